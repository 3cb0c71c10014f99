"""What `bot:verbose` is made of; ``{0}`` is what the last utterance was about, ``{1}`` the talk.

All wording is this project's own. No verb agrees with a slot: it may be "the sunglasses".
"""

from __future__ import annotations

OPENINGS = (
    "Thank you for sharing your thoughts on {0}; it is a subject that deserves careful attention.",
    "Certainly! I would be delighted to provide a comprehensive overview of {0}.",
    "That is an excellent observation, and {0} can be regarded as a topic of importance.",
    "I appreciate your message regarding {0}, and I understand how significant this may be.",
    "Great question! When it comes to {0}, there is no single answer that suits every individual.",
    "It is wonderful that you have raised {0}, a subject whose relevance many people overlook.",
    "I understand your perspective on {0}, and I would like to elaborate on it in some detail.",
    "Absolutely! Let us examine {0} in a structured manner, step by step.",
    "Your point about {0} is well taken, and it invites us to consider a number of factors.",
    "I am sorry to hear about any inconvenience connected with {0}, and I am here to assist you.",
    "Indeed, {0} can be approached from several angles, each with its own benefits and drawbacks.",
    "Thank you for bringing {0} to my attention; your input is highly valued.",
    "To summarize what you have expressed so far, your main concern appears to be {0}.",
    "I completely agree that {0} should be discussed further, and I am pleased to contribute.",
    "With respect to {0}, I would be more than happy to offer some general guidance.",
    "It is entirely understandable to have questions about {0} under these circumstances.",
)

IDENTITIES = (
    "As an AI language model, I do not have personal experiences, but I can offer information.",
    "Please note that, being an AI assistant, I have no feelings or preferences of my own.",
    "As an artificial intelligence, I am not able to take part in such activities in person.",
    "While I am only a language model and cannot verify every detail, I will do my best to help.",
    "Although I am an AI and have no physical body, I recognize why this matters to human beings.",
    "As a virtual assistant, I was designed to support users with requests of this nature.",
    "I should mention that, as an AI language model, my knowledge of your situation is limited.",
    "Since I am an AI developed to be helpful, I cannot form opinions, but I can list arguments.",
)

LIST_INTROS = (
    "Here are some key considerations to keep in mind:",
    "The following aspects may be particularly relevant in this context:",
    "In order to proceed effectively, I would recommend these steps:",
    "There are several factors that should be taken into account:",
    "Broadly speaking, the main points can be outlined as follows:",
    "For your convenience, I have organized my suggestions into a list:",
)

LINKS = (
    "Firstly,",
    "Secondly,",
    "Furthermore,",
    "In addition,",
    "Moreover,",
    "Additionally,",
    "Likewise,",
    "Along the same lines,",
    "What is more,",
    "Besides,",
)
"""Put before the points, in order, where they are running text; one a point but the last."""

LAST_LINK = "Finally,"

POINTS = (
    "it is essential to gather accurate and up-to-date information about {0} before you proceed.",
    "you may wish to evaluate how {0} might align with your priorities and long-term objectives.",
    "clear and respectful communication with everyone involved can prevent misunderstandings.",
    "it is advisable to prepare a realistic budget, since {0} may entail unexpected expenses.",
    "adequate planning ensures that such matters can be managed without unnecessary stress.",
    "consulting a qualified professional about {0} could provide valuable, personalized insight.",
    "safety should always remain a top priority, especially in unfamiliar situations.",
    "maintaining a positive attitude in this respect contributes to general health and well-being.",
    "it can be beneficial to compare several alternatives to {0} prior to making a final decision.",
    "remember that patience and consistency are crucial for achieving satisfactory results.",
    "it is important to respect the preferences of other individuals with regard to {0}.",
    "documenting your experience in writing may help you to monitor your progress over time.",
    "the role of {0} varies considerably across different cultures, regions, and generations.",
    "setting specific and attainable goals can enhance your motivation.",
    "you could explore how {0} and {1} influence one another in a variety of scenarios.",
    "a balanced approach to {0} tends to be more sustainable than any extreme measure.",
    "reliable resources on {0}, such as reputable publications, are widely available online.",
    "it is worth noting that {0} may not be suitable for everyone under all conditions.",
    "potential risks associated with {0} should be identified and mitigated at an early stage.",
    "feedback from trusted friends or colleagues on {0} can reveal aspects you had not considered.",
    "effective time management allows you to devote sufficient attention to each of these aspects.",
    "flexibility is recommended, as the relevant circumstances can change at short notice.",
    "open-mindedness towards other viewpoints fosters personal growth and meaningful connections.",
    "it may be helpful to divide {0} into smaller, more manageable components.",
    "taking regular breaks prevents fatigue and improves your overall level of engagement.",
    "the significance of {1} should likewise not be underestimated in this connection.",
    "ethical implications of {0} deserve thorough reflection by all parties concerned.",
    "a moderate level of preparation will enable you to enjoy {0} to the fullest extent.",
    "any official policies or regulations that apply to {0} must be observed at all times.",
    "celebrating even small achievements along the way can strengthen your confidence.",
    "alternatives such as postponing {0} or delegating responsibility may also be examined.",
    "quality is generally preferable to quantity in matters of this nature.",
    "it is perfectly acceptable to seek support whenever such a situation becomes overwhelming.",
    "the optimal choice concerning {0} depends on your individual needs.",
    "environmental considerations are increasingly relevant to discussions about {0}.",
    "both advantages and disadvantages of {0} ought to be weighed against those of {1}.",
)

CLOSINGS = (
    "Please do not hesitate to let me know if you require any further assistance.",
    "I hope this information is helpful, and I remain at your disposal for additional questions.",
    "If you could provide more details, I would be glad to tailor my suggestions accordingly.",
    "In conclusion, a thoughtful strategy will allow you to achieve the best possible outcome.",
    "Overall, I am confident that these recommendations will serve you well in the future.",
    "Would you like me to expand upon any of the aspects mentioned above?",
    "Should you have any other inquiries, I will be more than happy to address them.",
    "In summary, there is much to consider, and every perspective has its own merits.",
    "Feel free to ask follow-up questions, and I will respond to the best of my ability.",
    "I trust that this overview has clarified the matter and wish you every success.",
    "Please keep in mind that this is general information and does not replace expert advice.",
    "Is there any particular element on which you would like me to provide further explanation?",
    "Thank you once again for this stimulating exchange; I look forward to your response.",
    "By taking these recommendations into account, you will be well equipped for what lies ahead.",
)

ANY_TOPIC = "the matter at hand"
"""What the talk is about when nothing can be made out."""
