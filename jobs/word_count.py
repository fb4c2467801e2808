"""Word count: sentences in, an update `(word, count so far)` out for every single word.

The counts live in a store, so they go on after a restart or a crash. Every word gives exactly one update: as many updates as words. Each
task counts what stands in its own partition: a word's total over all partitions is the sum of the tasks' counts.

A word is what stands between two white spaces, without the punctuation around it, case folded (`"The` and `the,` are the same word;
`well-known` and `don't` are one word each; a lone dash is none).
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import accumulate

from samzapy import IncomingMessageEnvelope, KeyValueStore, StreamTask, TaskContext, TaskCoordinator
from samzapy.api.context import MessageCollector

AROUND_WORDS = "".join(chr(c) for c in range(33, 127) if not chr(c).isalnum()) + "“”‘’„‚«»‹›…–—¿¡·•。、，；：？！（）「」『』"


def words(sentence: str) -> list[str]:
    """The words of a sentence, in order."""
    return [word for raw in sentence.split() if (word := raw.strip(AROUND_WORDS).casefold())]


class WordCount(StreamTask[bytes | None, str | None]):
    """Counts words in the store `counts`; sends each new count to `word-counts`."""

    def init(self, context: TaskContext) -> None:
        self.counts: KeyValueStore[str, int] = context.get_store("counts")

    def process(
        self, envelope: IncomingMessageEnvelope[bytes | None, str | None], collector: MessageCollector, coordinator: TaskCoordinator
    ) -> None:
        if envelope.message is None:
            return
        for word in words(envelope.message):
            count = self.counts.update_with(word, lambda n: n + 1, 0)
            collector.send("word-counts", count, key=word)


# -- the direct way, to compare with ---------------------------------------------------------------------------------------------


def count_words(lines: Iterable[str]) -> Counter[str]:
    """How often each word occurs, by a plain loop."""
    counts: Counter[str] = Counter()
    for line in lines:
        counts.update(words(line))
    return counts


# -- sentences to count ----------------------------------------------------------------------------------------------------------

COMMON_FIRST = (
    "the of and to a in is it that was for on with as at by be this from or had not but what all were when we there can an your which their"
    " if will each about how up out them then she many some so these would other into has more her two like him see time could no make than"
    " first been its who now people my made over did down only way find use may water long little very after called just where most know"
    " river mountain harbour lantern copper window garden winter summer market ladder bridge island thunder whisper candle meadow hammer"
    " journey letter silver basket orchard feather saddle valley cellar kettle mirror needle pocket ribbon shadow timber violin wagon"
    " anchor barrel cherry desert engine falcon glacier hollow insect jacket kernel lizard marble nectar oyster pebble quarry rocket spider"
    " tunnel umbrella velvet walnut yellow zebra acorn beacon cobalt dragon ember fountain granite horizon ivory jasmine kitten lagoon"
)
VOCABULARY = COMMON_FIRST.split()
CUMULATIVE_WEIGHTS = list(accumulate(1.0 / rank for rank in range(1, len(VOCABULARY) + 1)))  # as in real texts: the n-th word 1/n as often
SHORTEST, LONGEST = 4, 12


def sentences(count: int, seed: int = 0) -> Iterator[str]:
    """So many sentences, always the same for a seed: frequent and rare words, a capital first, a full stop."""
    random_words = random.Random(seed)
    for _ in range(count):
        length = random_words.randint(SHORTEST, LONGEST)
        yield " ".join(random_words.choices(VOCABULARY, cum_weights=CUMULATIVE_WEIGHTS, k=length)).capitalize() + "."


def records(count: int, seed: int = 0) -> Iterator[tuple[bytes | None, bytes]]:
    """The same as records of the topic `sentences`: no key, the sentence as the value."""
    for sentence in sentences(count, seed):
        yield None, sentence.encode()
