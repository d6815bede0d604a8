"""A small interpreter of IEC 61131-3 structured text, strict about what it accepts."""

import math
import re

TOKEN = re.compile(
    r"\s+|(?P<real>\d+\.\d+(E[+-]?\d+)?(?![\w.]))|(?P<int>\d+(?![\w.]))"
    r"|(?P<word>[A-Za-z][A-Za-z0-9_]*)|(?P<sign>:=|<=|>=|<>|[-+*/()<>=;:])"
)


def without_comments(text, *, nested):
    """The text less its comments, in tools where they nest and in tools where they do not."""
    kept, depth, at = [], 0, 0
    while at < len(text):
        pair = text[at : at + 2]
        if pair == "(*" and (nested or depth == 0):
            depth, at = depth + 1, at + 2
        elif pair == "*)" and depth > 0:
            depth, at = depth - 1, at + 2
        else:
            kept += text[at] if depth == 0 else ""
            at += 1
    assert depth == 0, "a comment is left open"
    return "".join(kept)


def tokens_of(text):
    found, at = [], 0
    while at < len(text):
        match = TOKEN.match(text, at)
        assert match, f"not structured text: {text[at : at + 40]!r}"
        if match.lastgroup:
            kind = "real" if match["real"] else match.lastgroup
            found.append((kind, match[0].upper() if kind == "word" else match[0]))
        at = match.end()
    return found


class FunctionBlock:
    """One instance: its variables keep their values from call to call, as in a PLC."""

    def __init__(self, text):
        text.encode("ascii")
        self.tokens = tokens_of(without_comments(text, nested=False))
        assert self.tokens == tokens_of(without_comments(text, nested=True))
        self.at, self.memory, self.sections = 0, {}, {}
        self.take("FUNCTION_BLOCK")
        self.name = self.word()
        while self.peek() in ("VAR_INPUT", "VAR_OUTPUT", "VAR"):
            self.declarations()
        self.body = self.at
        assert self.tokens[-1][1] == "END_FUNCTION_BLOCK"

    def __call__(self, values):
        inputs = self.sections["VAR_INPUT"]
        assert len(inputs) == len(values)
        self.memory.update(zip(inputs, map(float, values), strict=True))
        self.at = self.body
        self.statements(active=True)
        self.take("END_FUNCTION_BLOCK")
        assert self.at == len(self.tokens)
        return {name: self.memory[name] for name in self.sections["VAR_OUTPUT"]}

    def peek(self):
        return self.tokens[self.at][1]

    def next(self):
        self.at += 1
        return self.tokens[self.at - 1]

    def take(self, wanted):
        found = self.next()[1]
        assert found == wanted, f"expected {wanted}, found {found}"

    def word(self):
        kind, text = self.next()
        assert kind == "word", text
        return text

    def declarations(self):
        names = self.sections.setdefault(self.word(), [])
        while self.peek() != "END_VAR":
            name = self.word()
            assert name not in self.memory, f"{name} is declared twice"
            self.take(":")
            self.memory[name] = {"LREAL": 0.0, "DINT": 0, "BOOL": False}[self.word()]
            self.take(";")
            names.append(name)
        self.take("END_VAR")

    def statements(self, active):
        while self.peek() not in ("ELSIF", "ELSE", "END_IF", "END_FUNCTION_BLOCK"):
            if self.peek() == "IF":
                self.choice(active)
            else:
                self.assignment(active)

    def choice(self, active):
        self.take("IF")
        active = self.branch(active)
        while self.peek() == "ELSIF":
            self.next()
            active = self.branch(active)
        if self.peek() == "ELSE":
            self.next()
            self.statements(active)
        self.take("END_IF")
        self.take(";")

    def branch(self, active):
        """A condition and what it guards; whether a later branch may still be taken."""
        holds = self.expression()
        assert isinstance(holds, bool)
        self.take("THEN")
        self.statements(active and holds)
        return active and not holds

    def assignment(self, active):
        name = self.word()
        self.take(":=")
        value = self.expression()
        self.take(";")
        assert type(value) is type(self.memory[name]), f"{name} changes its type"
        if active:
            self.memory[name] = value

    def expression(self):
        value = self.conjunction()
        while self.peek() == "OR":
            self.next()
            value = self.conjunction() | value
        return value

    def conjunction(self):
        value = self.comparison()
        while self.peek() == "AND":
            self.next()
            value = self.comparison() & value
        return value

    def comparison(self):
        value = self.sum()
        if self.peek() not in ("<=", ">", "="):
            return value
        sign, other = self.next()[1], self.sum()
        assert type(value) is type(other)
        return {"<=": value <= other, ">": value > other, "=": value == other}[sign]

    def sum(self):
        value = self.product()
        while self.peek() in ("+", "-"):
            sign, term = self.next()[1], self.product()
            value = value + term if sign == "+" else value - term
        return value

    def product(self):
        value = self.factor(signed=True)
        while self.peek() in ("*", "/"):
            sign, other = self.next()[1], self.factor()
            value = value * other if sign == "*" else value / other
        return value

    def factor(self, signed=False):
        kind, text = self.next()
        if kind == "real":
            return float(text)
        if kind == "int":
            return int(text)
        if text == "(":
            value = self.expression()
            self.take(")")
            return value
        if text == "-" and signed and self.tokens[self.at - 2][1] in (":=", "("):
            return -self.factor()
        if text == "ABS":
            return math.fabs(self.factor())
        if text in ("EXP", "COS", "SIN"):  # an error where it has no value, as a PLC may stop
            return getattr(math, text.lower())(self.factor())
        return (
            {"TRUE": True, "FALSE": False}[text] if text not in self.memory else self.memory[text]
        )
