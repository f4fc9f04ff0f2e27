"""Text for the example's model, made by a grammar: questions about numbers and days, and their answers.

All of it comes from the functions below, so that it may be shipped, and every answer can be checked.
"""

import random

DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
    "seventeen eighteen nineteen"
).split()
TENS = "_ _ twenty thirty forty fifty sixty seventy eighty ninety".split()


def conversation(random: random.Random) -> list[dict[str, str]]:
    """One to three questions with their answers, as messages of a chat."""
    messages = []
    for _ in range(random.choice([1, 1, 2, 3])):
        question, answer = random.choice(QUESTIONS)(random)
        messages.append({"role": "user", "content": question})
        messages.append({"role": "assistant", "content": answer})
    return messages


def plus(random):
    a, b = random.randrange(100), random.randrange(100)
    return f"What is {a} plus {b}?", f"{a} plus {b} is {a + b}."


def minus(random):
    b, a = sorted([random.randrange(100), random.randrange(100)])
    return f"What is {a} minus {b}?", f"{a} minus {b} is {a - b}."


def count(random):
    a = random.randrange(random.choice([30, 1000]))
    b = a + random.randrange(2, 40)
    if random.random() < 0.3:
        return f"Count from {b} down to {a}.", ", ".join(map(str, range(b, a - 1, -1))) + "."
    return f"Count from {a} to {b}.", ", ".join(map(str, range(a, b + 1))) + "."


def spell(random):
    n = random.randrange(1000)
    return f"Spell {n}.", words(n).capitalize() + "."


def digits(random):
    n = random.randrange(1000)
    return f"Write {words(n)} in digits.", f"{n}."


def order(random):
    numbers = random.sample(range(100), random.randrange(3, 7))
    return f"Sort {', '.join(map(str, numbers))}.", ", ".join(map(str, sorted(numbers))) + "."


def greater(random):
    a, b = random.sample(range(1000), 2)
    return f"Which is greater, {a} or {b}?", f"{max(a, b)} is greater than {min(a, b)}."


def parity(random):
    n = random.randrange(1000)
    return f"Is {n} even or odd?", f"{n} is {'odd' if n % 2 else 'even'}."


def day(random):
    start, later = random.randrange(7), random.randrange(1, 8)
    plural = "" if later == 1 else "s"
    asked = f"What day comes {later} day{plural} after {DAYS[start]}?"
    return asked, f"{DAYS[(start + later) % 7]}."


def stars(random):
    n = random.randrange(1, 13)
    return f"Draw {words(n)} star{'' if n == 1 else 's'}.", "★" * n


QUESTIONS = [plus, plus, minus, count, count, spell, digits, order, greater, parity, day, stars]


def words(n: int) -> str:
    if n >= 100:
        rest = f" {words(n % 100)}" if n % 100 else ""
        return f"{ONES[n // 100]} hundred{rest}"
    if n >= 20:
        return TENS[n // 10] + (f"-{ONES[n % 10]}" if n % 10 else "")
    return ONES[n]
