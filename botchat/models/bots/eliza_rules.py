"""The keywords of `bot:eliza`, their ranks and what it says to them.

The mechanism is Weizenbaum's (ELIZA, CACM 9(1), 1966); the wording is this project's own.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Rule:
    """One decomposition of a clause and the questions it leads to.

    ``{0}`` in a reply is the pattern's group with persons exchanged. The rule of the highest
    ``rank`` that fits a clause of the last utterance decides; within a rank all replies of all
    rules compete.
    """

    rank: int
    pattern: re.Pattern[str]
    replies: tuple[str, ...]


def _rule(rank: int, pattern: str, *replies: str) -> Rule:
    return Rule(rank, re.compile(pattern, re.IGNORECASE), replies)


_KIN = (
    "mother|mum|mom|father|dad|parents|sister|brother|wife|husband|son|daughter|family|grandmother"
    "|grandfather|grandma|grandpa|gran|aunt|uncle|cousin|children|kids"
)

RULES: tuple[Rule, ...] = (
    # Feelings and needs.
    _rule(
        7,
        r"\bi(?:'m| am| feel| felt| was)(?: \w+)? (sad|unhappy|lonely|depressed|upset|angry|worried"
        r"|afraid|scared|nervous|tired|exhausted|sick|ill|bored|ashamed|jealous|stressed|lost)\b",
        "How long does it last when you are {0}?",
        "Are you {0} more often than people notice?",
        "What would it take for you not to be {0}?",
    ),
    _rule(
        7,
        r"\bi(?:'m| am| feel| felt| was)(?: \w+)? (happy|glad|excited|delighted|proud|pleased"
        r"|relieved|thrilled|lucky)\b",
        "Who else knows that you are {0}?",
        "What would spoil it, being {0}?",
        "Is it unusual for you to be {0}?",
    ),
    _rule(
        6,
        r"\bi (?:really |just |only )?(?:want|need|wish|hope|would like|long) to (.+)",
        "What keeps you from it, if you want to {0}?",
        "Suppose you did {0}. What would come after?",
        "Who would object if you were to {0}?",
    ),
    _rule(
        6,
        r"\bi'd (?:really )?(?:like|love) to (.+)",
        "And what stops you, if you would like to {0}?",
        "When did you first think that you would like to {0}?",
    ),
    _rule(
        6,
        r"\bi (?:really |just )?(?:need|want) (?!to\b)(.+)",
        "What would you do if you never got {0}?",
        "Do you truly need {0}, or is it a habit?",
        "And once you have {0}, will that be enough?",
    ),
    _rule(
        6,
        r"\bi (?:can't|cannot|could not|couldn't) (?!wait\b|help\b|agree\b)(.+)",
        "How do you know that you cannot {0}? Have you tried lately?",
        "Who could {0}, if you could not?",
        "Would you be somebody else if you could {0}?",
    ),
    _rule(
        6,
        r"\bi (?:don't|do not|didn't|did not) (?!know\b|think\b|have\b)(.+)",
        "What would have to happen before you {0}?",
        "Is it a pity or a relief that you do not {0}?",
    ),
    _rule(
        6,
        r"\bi (?:really |used to |do )?(?:love|enjoy|hate|miss) (?!to\b)(.+)",
        "Has it always been like that, you and {0}?",
        "What would you put in the place of {0}?",
        "Could you explain {0} to somebody who has never heard of such a thing?",
    ),
    _rule(
        5,
        r"\bi (?:think|believe|guess|suppose|thought|reckon)(?: that)?+"
        r" ((?:you|he|she|it|we|they|that|this|the|my|your)(?:'\w+)? \w+.+)",
        "What if you are mistaken, and it only seems that {0}?",
        "Who first gave you the idea that {0}?",
        "Do you think so, or do you hope so, that {0}?",
    ),
    _rule(
        5,
        r"\bi (?:don't|do not|didn't) know(?:$| what\b| how\b| if\b| why\b| where\b| who\b)",
        "If you did know, would you say it?",
        "Is there something that you would rather not know?",
        "And who would know?",
    ),
    _rule(
        5,
        r"\bi (?:remember|recall|forgot|forget)\b",
        "What else happened around that time?",
        "Do you trust your memory in such things?",
    ),
    _rule(
        5,
        r"\bi (?:dreamed|dreamt)\b|\bdreams?\b",
        "Do your dreams repeat themselves?",
        "If that were a dream, how would it end?",
    ),
    # People.
    _rule(
        6,
        rf"\bmy ({_KIN})\b",
        "How do things stand between you and your {0}?",
        "What would your {0} say, sitting here with us?",
        "Do you take after your {0}?",
    ),
    _rule(
        6,
        rf"\byour ({_KIN})\b",
        "There is not much to say about my {0}. What about yours?",
        "I would sooner not speak of my {0}. Would you speak of yours?",
    ),
    _rule(
        5,
        rf"\b({_KIN})\b",
        "When you hear the word {0}, whom do you see?",
        "Would you rather not talk about your own {0}?",
    ),
    _rule(
        5,
        r"\bmy (friend|friends|boyfriend|girlfriend|boss|teacher|neighbour|neighbor|roommate"
        r"|colleague|doctor|manager|landlord|professor)\b",
        "Would your {0} tell the story the same way?",
        "What do you owe your {0}, do you think?",
        "What does your {0} want from you?",
    ),
    _rule(
        3,
        r"\b(?:friends?|boss|teacher|professor|doctor|neighbou?r|manager)\b",
        "Do you get along with people like that?",
        "Is there a person like that in your life?",
    ),
    _rule(
        2,
        r"\b(everyone|everybody|nobody|no one|always|never)\b",
        '"{0}" is a strong word. Can you think of an exception?',
        "Truly {0}? When was the last time you counted?",
    ),
    # Everyday subjects.
    _rule(
        3,
        r"\b(?:work|job|office|company|meeting|project|interview)\b",
        "What would you do with your days if there were no work?",
        "Does your work know what it asks of you?",
    ),
    _rule(
        3,
        r"\b(?:school|class|exam|homework|university|college|lesson|study|students?)\b",
        "What did school teach you that you would like to forget?",
        "Were you a good pupil, would you say?",
    ),
    _rule(
        3,
        r"\b(?:money|pay|price|cost|dollars?|pounds?|expensive|cheap|afford|rent)\b",
        "Does money come up often when you talk to people?",
        "If it were free, would you still care?",
    ),
    _rule(
        3,
        r"\b(?:eat|food|dinner|lunch|breakfast|restaurant|cook|cooking|coffee|tea|hungry|cake)\b",
        "Who did you share your meals with when you were small?",
        "Is it the food that you are after, or the company?",
    ),
    _rule(
        3,
        r"\b(?:trip|travel|holiday|vacation|train|plane|flight|airport|hotel|bus|visit)\b",
        "When you go away, what is it that you leave behind?",
        "Is it the going or the arriving that you like?",
    ),
    _rule(
        3,
        r"\b(?:rain|raining|snow|sunny|cold|hot|weather|storm|freezing)\b",
        "Does the weather decide how you feel?",
        "And what is the weather like inside you?",
    ),
    _rule(
        3,
        r"\b(?:late|early|time|o'clock|minutes?|hurry|wait|waiting)\b",
        "Do you often feel that time is against you?",
        "What would you do with an hour that nobody counted?",
    ),
    _rule(
        3,
        r"\b(?:hospital|medicine|headache|fever|pain|hurts?|health|sleep|asleep)\b",
        "What is your body trying to tell you?",
        "Who looks after you at such times?",
    ),
    _rule(
        3,
        r"\b(?:film|movie|book|music|song|game|team|concert|show|painting|tv)\b",
        "Which part in it would you have liked to play?",
        "What do you see in it that others do not?",
    ),
    _rule(
        3,
        r"\b(?:buy|bought|shop|store|shopping|sale|dress|shoes|shirt)\b",
        "Does having new things change anything for you?",
        "What did you want when you wanted that?",
    ),
    _rule(
        3,
        r"\b(?:house|home|room|flat|apartment|kitchen|street|garden|car|bike)\b",
        "Where do you feel most at home?",
        "If those walls could talk, whom would they talk about?",
    ),
    _rule(
        3,
        r"\b(?:party|birthday|wedding|christmas|present|gift)\b",
        "What was the best one you were ever given?",
        "Do you enjoy such occasions, or do you wait for them to end?",
    ),
    _rule(
        3,
        r"\b(?:dog|cat|animals?|birds?|horse)\b",
        "What do animals know that we do not?",
        "Would you trade places with it?",
    ),
    _rule(
        3,
        r"\b(?:computer|machine|internet|website|phone|online|robot|app)\b",
        "Do you talk to machines when nobody listens?",
        "Would a machine have put it better than I did?",
    ),
    # Forms of speech.
    _rule(
        6,
        r"^(?:please )?(?:just )?((?:tell|give|show|let|help|call|bring|take|wait for|lend) me\b"
        r".*)",
        "Why do you want me to {0}?",
        "What will you do if I refuse to {0}?",
    ),
    _rule(
        5,
        r"^let's (.+)",
        "Why should we {0}?",
        "What would the others say if we were to {0}?",
    ),
    _rule(
        5,
        r"^(?:please|don't|you should|you'd better|you need to|you must|you have to|try to)"
        r" (?!be\b).+",
        "Is that advice, or something you tell yourself?",
        "I seldom do as I am told. Do you?",
        "And if I did the opposite, what then?",
    ),
    _rule(3, r"\bif (?:i|you|we)\b", "How likely is it, do you think?", "And if not?"),
    _rule(
        3,
        r"\b(?:sorry|apologi[sz]e|my fault|forgive)\b",
        "Is there anything you are sorrier for than that?",
        "Nobody was blaming you. Did you feel blamed?",
    ),
    _rule(
        3,
        r"\b(?:thanks|thank you)\b",
        "What is it that you are thanking me for?",
        "Are you as polite as this to everyone?",
    ),
    _rule(
        3,
        r"\b(?:congratulations|well done|good luck|great news)\b",
        "Do good wishes reach you, or do they slide off?",
        "Is luck what it was?",
    ),
    _rule(
        3,
        r"^(?:hello|hi|hey|good morning|good evening|good afternoon)\b",
        "Good to have you here. What is on your mind?",
        "Hello. What shall we talk about, you or somebody else?",
    ),
    _rule(
        3,
        r"^(?:bye|goodbye|good night|see you)\b",
        "Before you leave, is there something you have not said yet?",
        "Are you leaving because of something I said?",
    ),
    _rule(
        1,
        r"^(?:yes|yeah|sure|of course|certainly|right|exactly|true|i do|i am|i have|ok|okay)$",
        "You sound quite sure. Were you always?",
        "Is it so simple, though?",
    ),
    _rule(
        1,
        r"^(?:no|nope|not really|not yet|not at all|i'm not|i don't)$",
        "No? Not even a little?",
        "That came quickly. Do you refuse things easily?",
    ),
    _rule(
        3,
        r"\b(?:maybe|perhaps|probably|i'm not sure|might)\b",
        "What would make you certain?",
        "You leave the door half open. Is that on purpose?",
    ),
    # Questions of any kind. Those that can be turned round have replies in `eliza_phrases` as well.
    _rule(
        5,
        r"^do you (?:ever |often |always )?(?!think\b|know\b|mean\b|suppose\b)([a-z]{2,}\b.*)\?$",
        "Perhaps I {0}, perhaps not. What about you?",
        "What would you think of me if I did {0}?",
    ),
    _rule(
        5,
        r"^are you (?!sure\b|ok\b|okay\b|all\b)(.+)\?$",
        "Would you rather that I were {0}?",
        "What would change between us if I were {0}?",
    ),
    _rule(
        5,
        r"^have you (?:ever |already )?(.+)\?$",
        "If I had {0}, would I remember it?",
        "Suppose that I have {0}. Would you be glad?",
    ),
    _rule(
        5,
        r"^(?:can|could|will|would) you (?:please )?(?!mind\b|like\b)([a-z]{2,}\b.*)\?$",
        "What makes you think that I could {0}?",
        "And if I would not {0}, whom would you ask?",
    ),
    _rule(
        5,
        r"^(?:can|could|may|should|shall) i (?:please )?([a-z]{2,}\b.*)\?$",
        "Do you need my leave to {0}?",
        "What would happen if you were to {0} without asking?",
    ),
    _rule(
        2,
        r"^what about (.+)\?$",
        "You would like to change the subject to {0}?",
        "Yes, what about {0}? You tell me.",
    ),
    _rule(2, r"^how about (.+)\?$", "And why {0}, of all things?"),
    _rule(
        2,
        r"^(?:how are you|how do you do|how's it going|what's up)\b",
        "I am as you find me. How do you find me?",
        "Better to talk about how you are. How are you, honestly?",
    ),
    _rule(
        1,
        r"\?$",
        "I would sooner put that question than answer it. What is your own view?",
        "I have turned that over for a long time and still cannot say. Can you?",
        "Suppose I had no answer. Would you go on asking?",
        "You ask as if you knew already. What is it that you know?",
        "What answer were you hoping for?",
        "That depends on who is asking. Who is asking?",
        "I could answer that, but would you believe me?",
        "People have asked me that before, and I put it off. What do you put off?",
        "Is that the question, or is there another one behind it?",
        "Let me ask you the same. What would you say?",
        "The honest reply is that I do not know. Does it disappoint you?",
        "I had rather hear it from you. How does it look to you?",
    ),
)
