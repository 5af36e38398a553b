"""A generated population in the shape of a Scottish census of 1901: people in households, eleven variables each.

Nobody in it ever lived. It has the questions of that census and the sparse tables of any: every share below was chosen
by hand, none was taken from a published table. A household is drawn in this order, each step by those before it:

1. district, class of the household, and the kind of its head: a couple, a widow, a widower, or a single man or woman;
2. the head's age, birthplace, years in the district, occupation and employment status;
3. living-in servants, by class and, on farms, by the head's employment status;
4. wife, children (born while she was 19 to 48, some have left), relatives, boarders, visitors;
5. occupation, employment status, birthplace and language of everybody else, and the rooms of the house.

The class and the years in the district are in no column, and steps multiply shares that belong to a district, a class,
a birthplace and an occupation each. So the pairs of columns leave much open: whether own land means servants depends on
the district, and who speaks Gaelic on age, birthplace and district together.

Numbers are raw words of the generator, turned into shares of cumulated weights by additions, products and comparisons
alone: a seed gives the same people with every version of NumPy and on every machine.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from synth_platform.sources import census_1901_shares as given

PEOPLE = 51_064
SEED = 1901
FEWEST_A_HOUSEHOLD = 3  # so many people on average there surely are, or households would not do
FEWEST_PEOPLE = 1_000

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


class _Words:
    """Shares and choices from the raw words of one seed."""

    def __init__(self, seed: int) -> None:
        self._bits = np.random.PCG64(seed)

    def shares(self, count: int) -> Floats:
        """Uniform on [0, 1), [count]."""
        return (self._bits.random_raw(count) >> np.uint64(11)).astype(np.float64) * 2.0**-53

    def below(self, limits: Ints) -> Ints:
        """A whole number below each limit, [count]."""
        return (self.shares(len(limits)) * limits).astype(np.int64)

    def chance(self, probability: Floats | float, count: int) -> Flags:
        """What happens with a probability, [count]."""
        return self.shares(count) < probability

    def choose(self, weights: Floats) -> Ints:
        """A column for each row of weights, [count, columns]."""
        edges = np.cumsum(weights, axis=1)
        points = self.shares(len(weights)) * edges[:, -1]
        chosen: Ints = (points[:, None] >= edges).sum(axis=1)
        return chosen


@dataclass(frozen=True, eq=False)
class _Homes:
    """What is drawn of each household before its members, [households] each; rank: the class."""

    district: Ints
    rank: Ints
    kind: Ints
    age: Ints
    birthplace: Ints
    years: Ints
    occupation: Ints
    status: Ints
    farmer: Flags
    servants: Ints


@dataclass(frozen=True, eq=False)
class _Members:
    """People in the order of their households, [people] each."""

    home: Ints
    sex: Ints
    age: Ints
    marital: Ints
    relationship: Ints

    def __getitem__(self, chosen: Ints | Flags) -> _Members:
        return _Members(*(values[chosen] for values in vars(self).values()))


def census_1901(seed: int = SEED, people: int = PEOPLE) -> pl.DataFrame:
    """The population of a seed, a row a person, household after household, head first.

    Columns: district, sex, age (whole years), marital_status, relationship, occupation, employment_status, birthplace,
    language, rooms (whole), servants (whether the household has a living-in one); the others are text of
    `census_1901_shares`. The last household loses whoever is above `people`. Raises ValueError for fewer people than
    FEWEST_PEOPLE.
    """
    if people < FEWEST_PEOPLE:
        raise ValueError(f"people: give {FEWEST_PEOPLE:,} at least, so that there are households of every kind")
    words = _Words(seed)
    homes = _homes(words, int(people / FEWEST_A_HOUSEHOLD))
    members = _members(words, homes)[np.arange(people)]
    occupation, status = _work(words, homes, members)
    birthplace = _birthplaces(words, homes, members)
    language = _languages(words, homes, members, birthplace)
    rooms = _rooms(words, homes, members)[members.home]
    district = homes.district[members.home]
    labelled = {
        "district": (given.DISTRICTS, district),
        "sex": (given.SEXES, members.sex),
        "age": (None, members.age),
        "marital_status": (given.MARITAL, members.marital),
        "relationship": (given.RELATIONSHIPS, members.relationship),
        "occupation": (given.OCCUPATIONS, occupation),
        "employment_status": (given.EMPLOYMENT, status),
        "birthplace": (given.BIRTHPLACES, birthplace),
        "language": (given.LANGUAGES, language),
        "rooms": (None, rooms),
        "servants": (("no", "yes"), (homes.servants[members.home] > 0).astype(np.int64)),
    }
    return pl.DataFrame(
        {
            name: pl.Series(codes) if labels is None else pl.Series(labels, dtype=pl.String).gather(codes)
            for name, (labels, codes) in labelled.items()
        }
    )


def _homes(words: _Words, count: int) -> _Homes:
    district = words.choose(np.broadcast_to(given.DISTRICT, (count, given.DISTRICT.shape[1])))
    rank = words.choose(given.CLASS[district])
    kind = words.choose(given.KIND[district])
    sex = np.isin(kind, (given.WIDOW, given.SINGLE_WOMAN)).astype(np.int64)
    age = 20 + 5 * words.choose(given.HEAD_AGE[kind]) + words.below(np.full(count, 5))
    birthplace = words.choose(given.BIRTHPLACE[district] * given.BIRTHPLACE_OF_CLASS[rank])
    years = words.below(age - 15)
    marital = np.array([1, 2, 2, 0, 0])[kind]
    works = words.chance(_at_work(sex, age, marital, rank, district), count)
    occupation = np.where(works, _occupations(words, sex, district, rank, birthplace), given.NO_OCCUPATION)
    status = _statuses(words, occupation, rank, district, age)
    crofting = district >= given.HIGHLAND
    farmer = (occupation == given.AGRICULTURE) & (status <= 1)
    row = np.where(farmer & crofting, 6, np.where(farmer & (status == given.EMPLOYER), 5, rank))
    servants = words.choose(given.SERVANTS[row])
    return _Homes(district, rank, kind, age, birthplace, years, occupation, status, farmer, servants)


def _at_work(sex: Ints, age: Ints, marital: Ints, rank: Ints, district: Ints) -> Floats:
    """Probability of an occupation, [people]."""
    child = np.select([age < 10, age < 13, age < 14], [0.0, 0.004, 0.10], 1.0)
    learning = np.where((rank >= given.MIDDLE) & (age < 20), 0.45, 1.0) * np.where(age == 14, 0.65, 1.0)
    men = np.select([age < 20, age < 65, age < 75], [0.93, 0.985, 0.75], 0.42)
    mills = np.where((district == given.BURGH) & (marital == 1), 2.5, 1.0)
    women = given.WOMEN_AT_WORK[marital, rank] * mills * np.where(age >= 65, 0.45, 1.0)
    share: Floats = child * np.where(sex == 0, men, women) * np.where(age < 20, learning, 1.0)
    return share


def _occupations(words: _Words, sex: Ints, district: Ints, rank: Ints, birthplace: Ints) -> Ints:
    """Occupations of people at work."""
    there = np.where(sex[:, None] == 0, given.MENS_OCCUPATION[district], given.WOMENS_OCCUPATION[district])
    return words.choose(there * given.OCCUPATION_OF_CLASS[rank] * given.OCCUPATION_OF_BIRTHPLACE[birthplace])


def _statuses(words: _Words, occupation: Ints, rank: Ints, district: Ints, age: Ints) -> Ints:
    """Employment statuses; the young are employees but for a few."""
    crofter = ((occupation == given.AGRICULTURE) & (district >= given.HIGHLAND)).astype(np.int64)
    weights = given.STATUS_OF_OCCUPATION[occupation] * given.STATUS_OF_CLASS[rank] * given.STATUS_OF_CROFTERS[crofter]
    weights = weights * np.where(age[:, None] < 20, np.array([0.0, 0.1, 1.0, 0.0]), 1.0)
    return np.where(occupation == given.NO_OCCUPATION, given.NOT_EMPLOYED, words.choose(weights))


def _members(words: _Words, homes: _Homes) -> _Members:
    """Everybody, household after household."""
    every = np.arange(len(homes.age))
    couples = every[homes.kind == given.COUPLE]
    head_sex = np.isin(homes.kind, (given.WIDOW, given.SINGLE_WOMAN)).astype(np.int64)
    heads = _some(every, head_sex, homes.age, np.array([1, 2, 2, 0, 0])[homes.kind], given.HEAD)
    gap = words.below(np.full(len(couples), 8)) - words.below(np.full(len(couples), 4))
    wife_age = np.maximum(homes.age[couples] - gap, 18)
    wives = _some(couples, 1, wife_age, 1, given.WIFE)
    mother_age = homes.age - 3 * (homes.kind == given.WIDOWER)
    mother_age[couples] = wife_age
    blocks = [heads, wives, _children(words, homes, mother_age), _relatives(words, homes)]
    blocks += [_boarders(words, homes), _servants(words, homes), _visitors(words, every)]
    joined = _Members(*(np.concatenate(column) for column in zip(*(vars(b).values() for b in blocks), strict=True)))
    return joined[np.argsort(joined.home, kind="stable")]


def _some(home: Ints, sex: Ints | int, age: Ints, marital: Ints | int, relationship: int) -> _Members:
    columns = np.broadcast_arrays(home, sex, age, marital, relationship)
    return _Members(*(column.astype(np.int64) for column in columns))


def _children(words: _Words, homes: _Homes, mother_age: Ints) -> _Members:
    band = np.searchsorted([25, 35, 45, 55], mother_age, side="right")
    born = np.where(homes.kind >= given.SINGLE_MAN, 0, words.choose(given.CHILDREN[band]))
    home = np.repeat(np.arange(len(born)), born)
    mother, rank, district = mother_age[home], homes.rank[home], homes.district[home]
    earliest = np.maximum(mother - 48, 0)
    age = earliest + words.below(np.maximum(mother - 18 - earliest, 1))
    sex = words.below(np.full(len(home), 2))
    farms = np.isin(district, (given.LOWLAND, given.BORDER, given.HIGHLAND, given.ISLANDS))
    stays = np.select(
        [sex == 1, district == given.COALFIELD], [np.where(farms & (rank < given.MIDDLE), 0.5, 0.75), 0.85], 0.7
    )
    stays = np.select(
        [age < 14, age < 25, age < 40], [np.where(rank < given.MIDDLE, 0.95, 0.8), stays, 0.4 * stays], 0.15
    )
    marital = np.where(age < 21, 0, words.choose(np.broadcast_to([0.93, 0.03, 0.04], (len(home), 3))))
    return _some(home, sex, age, marital, given.CHILD)[words.chance(stays, len(home))]


def _relatives(words: _Words, homes: _Homes) -> _Members:
    """A parent of the head, a brother or sister, a grandchild or niece: each in some households."""
    count, every = len(homes.age), np.arange(len(homes.age))
    sort = words.choose(np.where(homes.age[:, None] >= 55, [0.85, 0, 0.03, 0.12], [0.83, 0.06, 0.08, 0.03]))
    parent, sibling = sort == 1, sort == 2
    age = np.select(
        [parent, sibling],
        [
            homes.age + 20 + words.below(np.full(count, 15)),
            np.maximum(homes.age - 10 + words.below(np.full(count, 20)), 15),
        ],
        words.below(np.full(count, 15)),
    )
    sex = words.chance(np.select([parent, sibling], [0.7, 0.6], 0.5), count).astype(np.int64)
    marital = np.where(parent, np.where(words.chance(0.85, count), 2, 1), 2 * ((age >= 30) & words.chance(0.1, count)))
    return _some(every, sex, np.minimum(age, 96), marital, given.RELATIVE)[sort > 0]


def _boarders(words: _Words, homes: _Homes) -> _Members:
    many = (homes.district == given.COALFIELD) & (homes.rank == given.SKILLED - 1)
    home = np.repeat(np.arange(len(many)), words.choose(given.BOARDERS[np.where(many, 5, homes.rank)]))
    count = len(home)
    young = words.chance(0.07, count)  # boarded-out children
    age = np.where(young, words.below(np.full(count, 14)), 16 + words.below(16 + words.below(np.full(count, 45))))
    sex = words.chance(np.where(homes.district[home] == given.COALFIELD, 0.08, 0.3), count).astype(np.int64)
    marital = np.where(age < 21, 0, words.choose(np.broadcast_to([0.78, 0.12, 0.10], (count, 3))))
    return _some(home, sex, age, marital, given.BOARDER)


def _servants(words: _Words, homes: _Homes) -> _Members:
    home = np.repeat(np.arange(len(homes.age)), homes.servants)
    count = len(home)
    sex = (~words.chance(np.where(homes.farmer[home], 0.55, 0.05), count)).astype(np.int64)
    band = words.choose(np.broadcast_to(given.SERVANT_AGE, (count, given.SERVANT_AGE.shape[1])))
    age = given.SERVANT_AGE_FROM[band] + words.below(given.SERVANT_AGE_YEARS[band])
    marital = np.where(age < 25, 0, words.choose(np.broadcast_to([0.88, 0.04, 0.08], (count, 3))))
    return _some(home, sex, age, marital, given.SERVANT)


def _visitors(words: _Words, every: Ints) -> _Members:
    home = every[words.chance(0.02, len(every))]
    count = len(home)
    age = words.below(np.full(count, 80))
    marital = np.where(age < 25, 0, words.choose(np.broadcast_to([0.45, 0.35, 0.20], (count, 3))))
    return _some(home, words.chance(0.58, count).astype(np.int64), age, marital, given.VISITOR)


def _work(words: _Words, homes: _Homes, members: _Members) -> tuple[Ints, Ints]:
    """Occupations and employment statuses; heads have theirs, servants are employees of the house or the farm."""
    home = members.home
    district, rank = homes.district[home], homes.rank[home]
    works = words.chance(_at_work(members.sex, members.age, members.marital, rank, district), len(home))
    occupation = _occupations(words, members.sex, district, rank, homes.birthplace[home])
    # A third of the sons at work do what the head does.
    follows = (members.relationship == given.CHILD) & words.chance(1 / 3, len(home))
    follows &= (members.sex == 0) & (homes.occupation[home] != given.NO_OCCUPATION)
    occupation = np.where(works, np.where(follows, homes.occupation[home], occupation), given.NO_OCCUPATION)
    status = _statuses(words, occupation, rank, district, members.age)
    is_head, is_servant = members.relationship == given.HEAD, members.relationship == given.SERVANT
    on_farm = homes.farmer[home] & ((members.sex == 0) | words.chance(0.2, len(home)))
    occupation = np.select(
        [is_head, is_servant & on_farm, is_servant],
        [homes.occupation[home], given.AGRICULTURE, given.SERVICE],
        occupation,
    )
    return occupation, np.select([is_head, is_servant], [homes.status[home], given.EMPLOYEE], status)


def _birthplaces(words: _Words, homes: _Homes, members: _Members) -> Ints:
    """Children are born here since the family came, and where the head was before; wives are often from there too."""
    home = members.home
    of_head, years = homes.birthplace[home], homes.years[home]
    weights = given.BIRTHPLACE[homes.district[home]] * given.BIRTHPLACE_OF_CLASS[homes.rank[home]]
    drawn = words.choose(weights * given.BIRTHPLACE_OF_RELATIONSHIP[members.relationship])
    alike = words.chance(np.where(members.relationship == given.RELATIVE, 0.5, 0.65), len(home))
    kin = np.isin(members.relationship, (given.WIFE, given.RELATIVE)) & alike
    child = members.relationship == given.CHILD
    born_here = child & (members.age < years)
    return np.select(
        [members.relationship == given.HEAD, born_here, child | kin], [of_head, given.HERE, of_head], drawn
    )


def _languages(words: _Words, homes: _Homes, members: _Members, birthplace: Ints) -> Ints:
    home = members.home
    district = homes.district[home]
    Highlander = birthplace == given.IN_HIGHLANDS
    family = (homes.birthplace[home] == given.IN_HIGHLANDS) & (members.relationship == given.CHILD)
    local = birthplace == given.HERE
    row = np.select(
        [local & (district == given.ISLANDS), local & (district == given.HIGHLAND), Highlander, family], [0, 1, 2, 3], 4
    )
    age = np.searchsorted([10, 30, 60], members.age, side="right")
    return words.choose(given.LANGUAGE[4 * row + age])


def _rooms(words: _Words, homes: _Homes, members: _Members) -> Ints:
    """Rooms of each household: large families of some means have more, poor ones not."""
    tenements = np.isin(homes.district, (given.CITY, given.BURGH, given.COALFIELD))
    rooms = 1 + words.choose(given.ROOMS[homes.rank + 5 * ~tenements])
    size = np.bincount(members.home, minlength=len(rooms))
    more = (size >= 6) & (homes.rank >= given.SKILLED) & words.chance(0.5, len(rooms))
    return np.where(homes.servants > 0, np.maximum(rooms, 2), rooms) + more
