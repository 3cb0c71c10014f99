"""What `bot:eliza` can say where no keyword decides: its stock of phrases, in our own words.

``{0}`` is an echo of what was said. The mechanism is Weizenbaum's (ELIZA, CACM 9(1), 1966).
"""

from __future__ import annotations

EVASIONS = (
    "I have asked myself the same thing, mostly at night.",
    "My mother used to ask me that. I never found an answer for her.",
    "I could say yes and I could say no. What difference would it make to you?",
    "You would have to ask my brother, he remembers everything.",
    "Nobody at work ever asks me such things.",
    "I feel a little nervous when somebody wants to know that.",
    "Not that I know of. And you?",
    "I was afraid that you would ask.",
    "There was a time when I could have told you. It was a cold winter.",
    "I want to say something wise, but nothing comes.",
    "Sometimes I think it is only a dream. Do you know that feeling?",
    "It is the sort of thing my father would have had an opinion about.",
    "I always say the wrong thing when I am asked that.",
    "Some other time, perhaps. I am a little tired.",
    "I can't explain it, I can only say that it is so.",
    "It depends on the weather, like so much with me.",
    "I read something about that in a book, and then I forgot it.",
    "Let us say that I do. Would you be any happier?",
    "I don't know, and I used to be proud of not knowing.",
    "You sound like my teacher, who asked things all day.",
    "I think it must be so. It has always been so.",
    "Once, on a train, a stranger asked me that.",
    "I would like to tell you, if only I had the time.",
    "It makes me sad to think of it, and I could not tell you why.",
    "I believe that everybody feels like that now and then.",
    "I miss the days when I had an answer to everything.",
    "Only my sister knows, and she is not telling.",
    "If I said no, would you let me off?",
    "I need a moment for that one.",
    "My friends say so. I don't see it myself.",
    "It was different when I lived in a smaller house.",
    "I hope to find out before I am old.",
    "A doctor asked me that once, and he was sorry that he had.",
    "I am happy as long as I needn't decide.",
    "I remember less and less of it.",
    "Yes and no, like most things. Is it yes or no for you?",
    "Perhaps. It is not for me to say. Is it for you?",
    "I feel lost when we talk about that.",
    "I never had the courage to look. Have you?",
    "They told me at school not to worry about that.",
)
"""Replies to a question of its own kind: no answer, but something for the other to take up."""

ASKED = (
    "Why does it matter to you {0}?",
    "If I told you {0}, what would you do with the answer?",
    "Nobody has ever told me {0}. Whom else have you asked?",
    "You would like to know {0}. Since when?",
    "Can a person really say {0}?",
    "I have wondered, now and then, {0}. What is your guess?",
)
"""Replies to a question; ``{0}`` is the indirect question."""

TOLD = (
    "Does it trouble you that {0}?",
    "How long have you known that {0}?",
    "Who else knows that {0}?",
    "Suppose somebody denied that {0}. What would you say?",
    "So {0}. How did it come to that?",
    "You tell me that {0}. What am I to make of it?",
    "What follows for you, if {0}?",
    "I see, {0}. And how does that sit with you?",
    "Is it a good thing or a bad thing that {0}?",
    "And what if it were not so that {0}?",
)
"""Replies to a statement; ``{0}`` is the statement with persons exchanged."""

NAMED = (
    'What comes to mind when you hear the word "{0}"?',
    'You said "{0}". Why that word and no other?',
    'Suppose there were no such thing as "{0}". Would you miss it?',
    'I am still thinking about the word "{0}". What does it stand for?',
)
"""Replies that take up a noun phrase."""

REMEMBERED = (
    "A while ago you said that {0}. Has anything changed since then?",
    "Let us go back a little. You told me that {0}. Is that the whole story?",
    "Earlier on you said that {0}. Is this connected with it?",
    "I keep thinking of something you said, that {0}. Do you think of it too?",
    "We have left behind what you said first, that {0}. Was that on purpose?",
)
"""Replies that bring back an earlier statement of the other speaker."""

OWN = (
    "You never replied when I said that {0}. Why was that?",
    "When I told you that {0}, what did you think?",
    "I said before that {0}. Were you listening?",
)
"""Replies that bring back an earlier statement of one's own."""

ANYTHING = (
    "Do go on.",
    "What happened before that?",
    "There is something you are leaving out. What is it?",
    "Say that again in other words, would you?",
    "What does that suggest to you?",
    "I am not certain that I follow you. Could you give an example?",
    "Let us stay with that for a moment. What lies behind it?",
    "How would a stranger describe it?",
    "And then?",
    "Would you have said the same a year ago?",
    "That is one way to look at it. What would be another?",
    "Is there anyone with whom you could discuss this?",
    "What would you tell a friend who said that to you?",
    "You choose your words with care. Which ones did you leave out?",
    "We seem to be going round in a circle. Where would you like to go?",
    "Perhaps we should speak of something else. What would you choose?",
    "Tell me more about that.",
    "I hear you. What is the next thing?",
    "What part of it is hardest to say?",
    "Does talking about it change anything?",
    "Your silence says something as well. What does it say?",
    "That sounds like the end of a story. How did the story begin?",
    "Whose voice do you hear when you say that?",
    "Which of us two is asking the questions here?",
)
"""Replies that fit anything."""
