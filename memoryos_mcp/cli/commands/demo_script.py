"""The demo's conversation over one month, and the questions about this conversation."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum


class Look(Enum):
    """The part of the memory in which the demo finds the answer to a question."""

    SHORT_TERM = "short-term"
    MID_TERM = "mid-term"
    KNOWLEDGE = "long-term knowledge"
    PROFILE = "long-term profile"


@dataclass(frozen=True, slots=True)
class Exchange:
    """One exchange of the conversation.

    Every exchange takes place in the evening. ``days_ago`` is at least 1, because today's evening can be in the future.
    """

    days_ago: int
    user_input: str
    agent_response: str


@dataclass(frozen=True, slots=True)
class Question:
    """A question that the demo asks after the restart of the server.

    ``look`` is the part of the memory that contains the answer. The demo prints the memories that were found in this
    part.
    """

    text: str
    look: Look


CONVERSATION: Sequence[Exchange] = (
    Exchange(34, "I joined a pottery class in the old tannery last night. My first cylinder collapsed on the wheel!",
             "That happens to everybody. Wet your hands, brace your elbows, and pull the clay up slowly."),
    Exchange(34, "Haha, I pulled far too fast. I'm a night nurse, so my hands are always in a hurry.",
             "Then pottery may be the slowest thing in your week. Try three slow pulls instead of one."),
    Exchange(31, "My dog Biscuit is a beagle from the shelter. He howls when I leave for a night shift.",
             "Practise short absences first, and leave him a chew that lasts."),
    Exchange(29, "Biscuit dug up the neighbour's tulips today. How do I stop a beagle from digging?",
             "Give him a sandbox of his own and hide treats in it."),
    Exchange(27, "Back from the pottery class: I trimmed two bowls and left them to dry for the bisque kiln.",
             "Let them dry for a week. Damp clay cracks in the kiln."),
    Exchange(23, "The sandbox works! My dog buries everything in it, even my left slipper.",
             "Well done, Biscuit. Reward him each time he digs there."),
    Exchange(20, "The bowls survived the kiln! I glazed one in celadon and I'm painting a heron on the other.",
             "A heron on a bowl sounds lovely. Celadon runs, so keep the foot free of glaze."),
    Exchange(16, "There was a thunderstorm last night and Biscuit hid in the bathtub, shaking.",
             "Close the curtains, put the radio on and sit with him. Dogs borrow our calm."),
    Exchange(13, "There was walnut cake at the pottery class and I had to pass. I'm allergic to walnuts.",
             "I'll keep walnuts out of everything I suggest. Has the celadon bowl left the kiln by now?"),
    Exchange(10, "The vet says Biscuit must lose two kilos. No more cheese for my dog.",
             "Carrot sticks are a good treat for a beagle on a diet."),
    Exchange(7, "We signed the lease: a flat with a garden near the river, from the first of next month.",
             "Congratulations! A garden for the beagle and light for the bowls."),
    Exchange(6, "Can you help me plan the move? I have no car and forty boxes.",
             "Book a van early, pack by room, and label two sides of each box."),
    Exchange(5, "The van is booked for Saturday at eight. My brother comes to carry the wheel.",
             "Keep a bag with keys, papers and a kettle by the door."),
    Exchange(4, "I packed the kitchen today and wrapped every mug in a scarf.",
             "Scarves are fine padding. Mark those boxes as fragile."),
    Exchange(3, "The landlord asks for a deposit of two months. Is that usual?",
             "It is common. Ask where it is kept and get a receipt."),
    Exchange(3, "He sent the receipt. I also want shelves along the kitchen wall.",
             "Measure twice, and look for the studs before you drill."),
    Exchange(2, "The electricity is in my name now, the internet comes a week later.",
             "Then download a map and a film before Saturday."),
    Exchange(1, "The last box is taped. The spare key is with the bakery downstairs.",
             "Noted. Sleep well before the big day!"),
)  # fmt: skip

QUESTIONS: Sequence[Question] = (
    Question("Where did we leave off?", Look.SHORT_TERM),
    Question("What did I paint on a bowl?", Look.MID_TERM),
    Question("Fireworks frighten my pet. What could help?", Look.MID_TERM),
    Question("Which ingredients are dangerous for me?", Look.KNOWLEDGE),
    Question("Would I enjoy a present for animals, or one of art?", Look.PROFILE),
)
