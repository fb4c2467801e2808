"""How many records a container puts into one transaction, decided from what became of those before it. Two things make transactions smaller:

    the search   one was aborted: its records come again in smaller ones, until a record that is refused is alone (refused_record_search.py)
    the brokers  they took half or more of the time that they have for a commit: half as many records, whether it was committed or not

The search lets them grow to where it began, in steps of four after two commits. What fits the brokers is learnt, and stays: it doubles after
four commits in a row that were full and took less than a quarter of that time. So what comes then takes less than half of it: under a quota
that stays the same, a size that fits is not left again. Who starts over after a commit in doubt, or aborts, keeps what was learnt.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

NO_LIMIT = 1 << 62
SHRINK_BY, GROW_BY, COMMITS_TO_GROW = 8, 4, 2  # of the search, if a record was refused
HALF = 2  # of the search, if the reason is not in a record; and where brokers are slow
QUICK_TO_GROW = 4
SLOW, QUICK = 0.5, 0.25  # of the time that brokers have for a commit


@dataclass(frozen=True, slots=True)
class TransactionSize:
    """Attributes:
    searched: the search's limit, in records. began_at: where the search began. good: commits in a row since it last changed.
    fits: what was learnt of the brokers. quick: full and quick commits in a row since it last changed.
    is_felt: whether the last transaction was as large as fits, or too large.
    """

    searched: int = NO_LIMIT
    began_at: int = 0
    good: int = 0
    fits: int = NO_LIMIT
    quick: int = 0
    is_felt: bool = False

    @property
    def limit(self) -> int:
        """Records a transaction."""
        return min(self.searched, self.fits)

    @property
    def is_searching(self) -> bool:
        return self.searched != NO_LIMIT

    def divided(self, held: int, by: int) -> TransactionSize:
        """The search goes on with so much smaller ones; 1: one record alone."""
        return replace(self, searched=max(1, held // by), began_at=max(self.began_at, held), good=0)

    def failed(self, held: int, share: float) -> TransactionSize:
        """A transaction that held this was aborted, or is in doubt. `share`: of the time that brokers have for a commit, what they took."""
        return replace(self, fits=max(1, held // HALF), quick=0, is_felt=True) if share >= SLOW and held > 1 else self

    def committed(self, held: int, share: float, *, may_grow: bool = True) -> TransactionSize:
        """The same, of one that was committed. `may_grow`: the search has passed all that it looks at."""
        return self if held == 0 else (self._search_goes_on() if may_grow else self)._learnt(held, share)

    def _search_goes_on(self) -> TransactionSize:
        if not self.is_searching:
            return self
        if self.good + 1 < COMMITS_TO_GROW:
            return replace(self, good=self.good + 1)
        larger = self.searched * GROW_BY
        return replace(self, searched=larger, good=0) if larger < self.began_at else replace(self, searched=NO_LIMIT, began_at=0, good=0)

    def _learnt(self, held: int, share: float) -> TransactionSize:
        if share >= SLOW:
            return self.failed(held, share)
        is_full = held >= self.fits
        quick = (self.quick + is_full) if share < QUICK else 0
        grows = quick >= QUICK_TO_GROW
        return replace(self, fits=self.fits * 2 if grows else self.fits, quick=0 if grows else quick, is_felt=is_full)


def why_smaller(records: int, seconds: float, at: str, most: int, patience: str) -> str:
    """What is said while transactions are smaller because brokers are slow. `records`, `seconds`, `at`: the last commit that took too long, and when.
    `most`: what a transaction holds now. `patience`: the setting that says how long a commit may take, with its value."""
    name = patience.split()[0]
    return (
        f"commits take the brokers too long: one with {records:,} record{'s' * (records != 1)} took {seconds:.0f} s (the wait ended at {at}), and {patience}. "
        f"So a transaction holds at most {most:,} record{'s' * (most != 1)} now. See whether a broker is away, this host's clock was set back, "
        "or a quota holds this client back (kafka-configs.sh --bootstrap-server BROKER --describe --entity-type clients, and users); "
        f"lift the quota, raise {name}, or write fewer bytes per record"
    )
