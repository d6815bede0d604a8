"""A model as IEC 61131-3 structured text, for a PLC.

The text is the plainest that does the job: one assignment per feature, no loops, no arrays, no
library calls but ABS, EXP for probabilities, and COS and SIN for waves, so that it compiles in any
tool with LREAL. Names of features and classes may come from anywhere; they are written as legal
identifiers and harmless ASCII comments.
"""

from __future__ import annotations

import itertools
import json
import re
import textwrap
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from fdrsvm.data.rows import DataSettings
from fdrsvm.errors import InvalidInputError, UnsupportedError
from fdrsvm.model.linear_model import Label, LinearModel
from fdrsvm.model.sigmoids import LARGEST_LOG_ODDS, shared_sigmoids
from fdrsvm.model.structured_maps import (
    MAX_COMMENT,
    comment,
    curves,
    literal,
    map_variables,
    plus,
    sensor_shares,
    surfaces,
    waves,
)
from fdrsvm.risk.feature_maps import AdditiveFeatures, FourierFeatures

_MAX_NAME = 32  # the shortest limit among common PLC tools
_LEGAL = re.compile(r"[A-Za-z](_?[A-Za-z0-9])*")

# Keywords, types, functions and blocks of the standard; then what common tools add to them.
_WORDS = """
ABS ABSTRACT ACOS ACTION ADD AND ANDN ANY ARRAY ASIN AT ATAN ATAN2 BEGIN BY BYTE CAL CALC CALCN CASE
CHAR CLASS CONCAT CONFIGURATION CONSTANT CONTINUE COS CTD CTU CTUD DATE DATE_AND_TIME DELETE DINT
DIV DO DT DWORD ELSE ELSIF EN END END_ACTION END_CASE END_CLASS END_CONFIGURATION END_FOR
END_FUNCTION END_FUNCTION_BLOCK END_IF END_INTERFACE END_METHOD END_NAMESPACE END_PROGRAM END_REPEAT
END_RESOURCE END_STEP END_STRUCT END_TRANSITION END_TYPE END_VAR END_WHILE ENO EQ EXIT EXP EXPT
EXTENDS FALSE FINAL FIND FOR FROM FUNCTION FUNCTION_BLOCK F_EDGE F_TRIG GE GOTO GT IF IMPLEMENTS
INITIAL_STEP INSERT INT INTERFACE INTERNAL INTERVAL JMP JMPC JMPCN LD LDATE LDATE_AND_TIME LDN LDT
LE LEFT LEN LIMIT LINT LN LOG LOWER_BOUND LREAL LT LTIME LTIME_OF_DAY LTOD LWORD MAX METHOD MID MIN
MOD MOVE MUL MUX NAMESPACE NE NIL NON_RETAIN NOT NULL OF ON OR ORN OVERLAP OVERRIDE PERSISTENT
PRIORITY PRIVATE PROGRAM PROTECTED PUBLIC R READ_ONLY READ_WRITE REAL REF REF_TO REPEAT REPLACE
RESOURCE RET RETAIN RETC RETCN RETURN RIGHT ROL ROR ROUND RS RTC R_EDGE R_TRIG S SEL SEMA SHL SHR
SIN SINGLE SINT SQRT SR ST STEP STN STRING STRUCT SUB SUPER TAN TASK THEN THIS TIME TIME_OF_DAY TO
TOD TOF TON TP TRANSITION TRUE TRUNC TYPE UDINT UINT ULINT UNTIL UPPER_BOUND USING USINT VAR
VAR_ACCESS VAR_CONFIG VAR_EXTERNAL VAR_GLOBAL VAR_INPUT VAR_IN_OUT VAR_OUTPUT VAR_TEMP WCHAR WHILE
WITH WORD WSTRING XOR XORN

ADR AND_THEN ASSERT AUTHOR BIT BITADR BLOCK BLOCK_DB BLOCK_FB BLOCK_FC BOOL CODE_VERSION1 CONST
COUNTER DATA_BLOCK DEC END_BLOCK END_CONST END_DATA_BLOCK END_FUNCTIONBLOCK END_LABEL
END_ORGANIZATION_BLOCK END_PROPERTY END_REGION END_UNION EXTERNAL FAMILY FUNCTIONBLOCK INC INDEXOF
INI KNOW_HOW_PROTECT LABEL LIBRARY NAME OK ORGANIZATION_BLOCK OR_ELSE PARAMS POINTER PROPERTY
REFERENCE REGION S5TIME SIZEOF STANDARD TIMER TITLE UNION UNLINKED VAR_INST VAR_STAT VERSION VOID
XSTRING
"""
_RESERVED = frozenset(_WORDS.split())


def to_structured_text(
    model: LinearModel,
    *,
    name: str = "FDRSVM_Score",
    alarm_on: Collection[Label] | None = None,
) -> str:
    """A FUNCTION_BLOCK that scores one sample per call.

    Inputs are one LREAL per feature. Outputs are ``Score`` (or ``Score_1``, ``Score_2``, ... with
    more than two classes), ``ClassNumber`` (1 is ``classes[0]``), ``Valid`` and perhaps ``Alarm``.
    A model with probabilities also has ``Probability``, of the class that its file looks for (its
    ``positive``), or ``Probability_1``, ``Probability_2``, ... of all. They are the shared ones;
    ``fdrsvm.model.sigmoids.at_client`` makes them one client's own. With an input that is not a
    number, scores beyond 1E308, or waves of a sensor 1E12 of its ranges away, ``Valid`` is FALSE,
    ``ClassNumber`` is 0, probabilities are -1 and there is no alarm; what the machine should do
    then is for the caller to say.

    A curve is a table: the pieces of a sensor's range, and for each the line that is added to the
    score there. A surface is the sum of products of ``Ramp`` variables, with its values at the
    knots in comments.

    Parameters
    ----------
    model : LinearModel
        The model.
    name : str
        Name of the block.
    alarm_on : labels, optional
        The classes that set ``Alarm``. By default the fault if the threshold is that of an alarm,
        else ``classes[1]`` if there are two and they are numbers or booleans, as in -1 and 1.
        Sorted text does not tell which class is the fault, so with text there is no other
        ``Alarm`` unless asked for.
    """
    if not _is_identifier(name):
        raise InvalidInputError("name", "must be a legal identifier", f"it is {name!r}")
    n_classes = len(model.classes)
    scores = ["Score"] if n_classes == 2 else [f"Score_{k}" for k in range(1, n_classes + 1)]
    alarms = _alarm_numbers(model, alarm_on)
    names = model.feature_names or tuple(f"x{at}" for at in range(model.n_features))
    chances = _chance_names(model)
    internal = ["Best"] if n_classes > 2 else []
    internal += ["LogOdds", "Total"][: len(chances)] if chances else []
    internal += map_variables(model.features) if model.features is not None else []
    taken = {name, *scores, "ClassNumber", "Valid", "Alarm", "Best", *chances.values(), *internal}
    inputs = _identifiers(names, taken)
    said = _sensors(model, inputs)
    declared = [f"{word} : LREAL; {comment(one)}" for word, one in zip(inputs, said, strict=True)]
    with np.errstate(over="ignore", invalid="ignore"):  # no literal is infinite
        lines = [
            *_header(model),
            f"FUNCTION_BLOCK {name}",
            *_block("VAR_INPUT", declared),
            *_block("VAR_OUTPUT", [*_outputs(model, scores, alarms, chances)]),
            *_block("VAR", [f"{word} : LREAL;" for word in internal]),
            *_score_statements(model, scores, inputs, said),
            *_decision_statements(model, scores),
            *_chance_statements(model, scores, chances),
            *(
                [f"Alarm := {' OR '.join(f'(ClassNumber = {k})' for k in alarms)};"]
                if alarms
                else []
            ),
            "END_FUNCTION_BLOCK",
        ]
    return "\n".join(lines) + "\n"


def _alarm_numbers(model: LinearModel, alarm_on: Collection[Label] | None) -> list[int]:
    if alarm_on is None and model.alarm_statement is not None and model.positive is not None:
        return [model.positive + 1]
    if alarm_on is None:
        usual = len(model.classes) == 2 and not isinstance(model.classes[0], str)
        return [2] if usual else []
    if isinstance(alarm_on, str) or not set(alarm_on) <= set(model.classes):
        raise InvalidInputError(
            "alarm_on", f"must be a list of labels among {model.classes}", f"it is {alarm_on!r}"
        )
    return sorted(model.classes.index(label) + 1 for label in set(alarm_on))


def _is_identifier(name: Any) -> bool:
    return (
        isinstance(name, str)
        and _LEGAL.fullmatch(name) is not None
        and len(name) <= _MAX_NAME
        and name.upper() not in _RESERVED
    )


def _identifiers(names: Sequence[str], taken: Iterable[str]) -> list[str]:
    """One legal identifier per name, no two alike in any case of letters."""
    used = {word.upper() for word in taken} | _RESERVED
    identifiers = [""] * len(names)
    # Names that are legal as they are go first, so that "a b" cannot take the name of "a_b".
    for at in sorted(range(len(names)), key=lambda at: not _is_identifier(names[at])):
        ascii_name = unicodedata.normalize("NFKD", names[at]).encode("ascii", "ignore").decode()
        base = re.sub(r"[^A-Za-z0-9]+", "_", ascii_name).strip("_") or f"x{at}"
        base = base if base[0].isalpha() else f"x_{base}"
        # Cut to length, then with _2, _3, ... at its end.
        endings = itertools.chain([""], (f"_{number}" for number in itertools.count(2)))
        variants = (base[: _MAX_NAME - len(end)].rstrip("_") + end for end in endings)
        identifiers[at] = next(word for word in variants if word.upper() not in used)
        used.add(identifiers[at].upper())
    return identifiers


def _header(model: LinearModel) -> Iterator[str]:
    kind = "linear" if model.features is None else model.features.kind
    yield comment(f"FDR-SVM {kind} classifier, generated; train again rather than edit")
    yield comment(f"Estimator: {json.dumps(model.estimator)}")
    for number, label in enumerate(model.classes, start=1):
        yield comment(f"Class {number}: {json.dumps(label)}")
    for key, value in model.certificate.items():
        yield comment(f"Certificate {json.dumps(key)}: {json.dumps(value)}")
    said = json.dumps(model.alarm_statement or "")[1:-1].replace("*", "\\u002a")
    for line in textwrap.wrap(said, MAX_COMMENT - len("Alarm: ")):
        yield comment(f"Alarm: {line}")
    yield comment(f"SHA-256 of the coefficients: {model.fingerprint}")


def _block(keyword: str, declarations: Sequence[str]) -> list[str]:
    if not declarations:
        return []
    return [keyword, *(f"    {line}" for line in declarations), "END_VAR"]


def _outputs(
    model: LinearModel, scores: Sequence[str], alarms: Sequence[int], chances: Mapping[int, str]
) -> Iterator[str]:
    yield from (f"{score} : LREAL;" for score in scores)
    yield f"ClassNumber : DINT; {comment('0 while Valid is FALSE')}"
    yield f"Valid : BOOL; {comment('FALSE if an input is not a number or a score overflows')}"
    if alarms:
        yield f"Alarm : BOOL; {comment('FALSE while Valid is FALSE: watch both')}"
    for place, word in chances.items():
        of = comment(f"Of class {place + 1}, {json.dumps(model.classes[place])}; -1 if not Valid")
        yield f"{word} : LREAL; {of}"


def _sensors(model: LinearModel, inputs: Sequence[str]) -> list[str]:
    """Names for comments, with the unit that a contract gave."""
    rules = DataSettings(typed=frozenset()).as_trained(model.record).rules
    units = [rules[name].unit if name in rules else "" for name in model.feature_names or inputs]
    return [
        json.dumps(name) + (f" in {json.dumps(unit)[1:-1]}" if unit else "")
        for name, unit in zip(model.feature_names or inputs, units, strict=True)
    ]


def _score_statements(
    model: LinearModel, scores: Sequence[str], inputs: Sequence[str], said: Sequence[str]
) -> Iterator[str]:
    """Scores of the inputs, and the first word on whether they are valid."""
    features = model.features
    if features is None:
        for score, intercept, weights in zip(scores, model.intercept, model.coef, strict=True):
            yield f"{score} := {literal(intercept)};"
            for weight, word in zip(weights, inputs, strict=True):
                yield f"{score} := {score} {plus(weight)} * {word};"
        yield "Valid := TRUE;"
        return
    yield from sensor_shares(features, inputs, said)
    yield "Valid := TRUE;"
    yield from (
        f"{score} := {literal(intercept)};"
        for score, intercept in zip(scores, model.intercept, strict=True)
    )
    if isinstance(features, AdditiveFeatures):
        yield from curves(features, model.coef, scores, said)
        yield from surfaces(features, model.coef, scores, said)
    elif isinstance(features, FourierFeatures):
        yield from waves(features, model.coef, scores)
    else:
        raise UnsupportedError(
            f"structured text: a map of kind {features.kind!r} has no form there"
        )


def _decision_statements(model: LinearModel, scores: Sequence[str]) -> Iterator[str]:
    """Whether the scores are valid, and the class."""
    for score in scores:  # the comparison is FALSE for NaN
        yield f"Valid := Valid AND (ABS({score}) <= 1.0E+308);"
    yield from ("ClassNumber := 0;", "IF Valid THEN", "    ClassNumber := 1;")
    if len(scores) == 1:
        cut = _signed(model.threshold)
        yield from (f"    IF Score > {cut} THEN", "        ClassNumber := 2;", "    END_IF;")
    else:
        yield f"    Best := {scores[0]};"
        for number, score in enumerate(scores[1:], start=2):
            yield f"    IF {score} > Best THEN"
            yield f"        ClassNumber := {number};"
            yield f"        Best := {score};"
            yield "    END_IF;"
    yield "END_IF;"


def _chance_names(model: LinearModel) -> dict[int, str]:
    """Outputs for probabilities, by position of their class; none if the model has none."""
    if model.positive is not None:
        wanted = {model.positive: "Probability"}
    else:
        wanted = {k: f"Probability_{k + 1}" for k in range(len(model.classes))}
    return wanted if shared_sigmoids(model) else {}


def _chance_statements(
    model: LinearModel, scores: Sequence[str], chances: Mapping[int, str]
) -> Iterator[str]:
    """1 / (1 + e^-u), with u cut so that no EXP overflows; -1 if the scores are not valid."""
    if not chances:
        return
    yield from (f"{word} := -1.0;" for word in chances.values())
    yield "IF Valid THEN"
    most = f"{LARGEST_LOG_ODDS:.1f}"
    for word, score, one in zip(chances.values(), scores, shared_sigmoids(model), strict=True):
        distance = f"({score} - {_signed(one.centre)}) / {literal(one.scale)}"
        odds = f"{literal(one.slope)} * ({distance}) {plus(one.intercept)}"
        yield f"    LogOdds := {odds};"
        yield from (f"    IF LogOdds > {most} THEN", f"        LogOdds := {most};", "    END_IF;")
        yield f"    IF LogOdds <= (-{most}) THEN"
        yield from (f"        LogOdds := -{most};", "    END_IF;")
        exponent = "LogOdds" if model.positive == 0 else "-LogOdds"
        yield f"    {word} := 1.0 / (1.0 + EXP({exponent}));"
    if len(chances) > 1:
        yield f"    Total := {' + '.join(chances.values())};"
        yield from (f"    {word} := {word} / Total;" for word in chances.values())
    yield "END_IF;"


def _signed(value: float) -> str:
    """For a comparison: short where it is 0, in brackets where an operator would precede it."""
    text = literal(value) if value else "0.0"
    return f"({text})" if value < 0.0 else text
