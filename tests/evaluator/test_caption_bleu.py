"""BLEU and exact match against Papineni's definition in exact fractions (tests/bleu.py), which shares no code with ours."""
import os
import pathlib
import random
import subprocess

import pytest

import bleu

SCORE = pathlib.Path(os.environ.get("EVALBOARD_BUILD", "build")) / "tests/programs/score_captions"


def ours(told, references):
    lines = [" | ".join(" ".join(map(str, s)) for s in (sentence, *people)) for sentence, people in zip(told, references)]
    run = subprocess.run([SCORE], input="".join(line + "\n" for line in lines), capture_output=True, text=True, check=True)
    return {name: float(value) for name, value in map(str.split, run.stdout.splitlines())}


def same(told, references):
    want = bleu.scores(told, references)
    assert ours(told, references) == pytest.approx(want, rel=1e-12, abs=1e-15), (told, references)
    return want


def corpus(draw, told_length, people_length):
    """Sentences of few words, so that n-grams come again; those told are changed ones of people."""
    told, references = [], []
    for _ in range(draw.randint(1, 12)):
        people = [[draw.randint(1, 6) for _ in range(draw.randint(*people_length))] for _ in range(draw.randint(1, 5))]
        sentence = [word if draw.random() < 0.8 else draw.randint(1, 6) for word in draw.choice(people)]
        told.append((sentence + sentence)[:draw.randint(*told_length)])
        references.append(people)
    return told, references


@pytest.mark.parametrize("told_length, people_length", [
    ((6, 9), (6, 9)), ((1, 4), (6, 12)), ((9, 14), (3, 6)), ((0, 3), (0, 3))],
    ids=["as long", "shorter", "longer", "some empty"])
def test_random(told_length, people_length):
    draw, found = random.Random(4), []
    for _ in range(40):
        found.append(same(*corpus(draw, told_length, people_length)))
    assert any(0 < scores["bleu_4"] < 1 for scores in found) or told_length[1] < 4
    assert any(0 < scores["bleu_1"] < 1 for scores in found)


PEOPLE = ["it is a guide to action that ensures that the military will forever heed party commands",
          "it is the guiding principle which guarantees the military forces always being under the command of the party",
          "it is the practical guide for the army always to heed the directions of the party"]


def numbers(sentences, known={}):
    return [[known.setdefault(word, len(known)) for word in sentence.split()] for sentence in sentences]


@pytest.mark.parametrize("told, people, unigrams, bigrams", [
    ("the the the the the the the", ["the cat is on the mat", "there is a cat on the mat"], (2, 7), (0, 6)),
    ("it is a guide to action which ensures that the military always obeys the commands of the party", PEOPLE, (17, 18), (10, 17)),
    ("it is to insure the troops forever hearing the activity guidebook that party direct", PEOPLE, (8, 14), (1, 13)),
], ids=["clipped", "candidate 1", "candidate 2"])
def test_papineni(told, people, unigrams, bigrams):
    """The figures of the paper's examples, sections 2.1 and 2.1.1."""
    told, people = numbers([told]), [numbers(people)]
    for n, (found, everything) in enumerate((unigrams, bigrams), 1):
        assert bleu.precision(told, people, n) * everything == found
    same(told, people)


@pytest.mark.parametrize("told, people", [
    ([[]], [[[1, 2]]]), ([[]], [[[]]]), ([[], [1, 2, 3, 4]], [[[1]], [[1, 2, 3, 4]]]), ([[1, 2, 3, 4]], [[[]]]),
    ([[1, 2, 3, 4]], [[[1, 2, 3, 4, 5, 6], [7, 8]]])], ids=["nothing", "nothing of nothing", "one empty", "an empty one of people",
                                                          "equally near in length"])
def test_edges(told, people):
    same(told, people)
