"""Categories and shares of the generated census of 1901: weights of `census_1901`, chosen by hand, none published.

A table has a row for each district, class, birthplace or as its comment says, and its weights need no sum.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

DISTRICTS = (
    "city", "suburb", "burgh", "coalfield", "Lowland farms", "Border farms", "Highland", "islands",
)  # fmt: skip
SEXES = ("male", "female")
MARITAL = ("single", "married", "widowed")
RELATIONSHIPS = ("head", "wife", "child", "relative", "boarder", "servant", "visitor")
OCCUPATIONS = (
    "none", "professional", "commerce", "shopkeeping", "domestic service", "agriculture", "fishing", "mining",
    "metals and machines", "textiles and dress", "building", "transport and labour",
)  # fmt: skip
EMPLOYMENT = ("employer", "own account", "employee", "none")
BIRTHPLACES = (
    "this county", "other Lowlands", "other Highlands", "England and Wales", "Ireland", "abroad",
)  # fmt: skip
LANGUAGES = ("English", "Gaelic and English", "Gaelic")

Floats = NDArray[np.float64]

CITY, SUBURB, BURGH, COALFIELD, LOWLAND, BORDER, HIGHLAND, ISLANDS = range(8)
SKILLED, MIDDLE = 2, 3  # of the classes poor, working, skilled, middle, wealthy
COUPLE, WIDOW, WIDOWER, SINGLE_MAN, SINGLE_WOMAN = range(5)
HEAD, WIFE, CHILD, RELATIVE, BOARDER, SERVANT, VISITOR = range(7)
NO_OCCUPATION, SERVICE, AGRICULTURE, TEXTILES = 0, 4, 5, 9
EMPLOYER, EMPLOYEE, NOT_EMPLOYED = 0, 2, 3
HERE, IN_HIGHLANDS = 0, 2


def _table(text: str) -> Floats:
    """Weights, a row a line."""
    return np.array([[float(word) for word in line.split()] for line in text.strip().splitlines()])


DISTRICT = _table(".20 .09 .22 .16 .13 .06 .09 .05")
CLASS = _table("""
    .28 .40 .21 .09 .02
    .06 .16 .28 .34 .16
    .18 .40 .27 .12 .03
    .14 .60 .20 .05 .01
    .15 .50 .15 .16 .04
    .14 .48 .15 .17 .06
    .30 .48 .12 .08 .02
    .38 .50 .08 .035 .005""")
KIND = _table("""
    .66 .14 .05 .06 .09
    .70 .11 .04 .04 .11
    .68 .13 .05 .05 .09
    .80 .08 .05 .05 .02
    .72 .10 .06 .08 .04
    .70 .10 .06 .08 .06
    .60 .15 .06 .10 .09
    .62 .18 .05 .08 .07""")
HEAD_AGE = _table("""
    .05 .12 .15 .15 .14 .12 .10 .07 .05 .03 .015 .004 .001
    .002 .01 .03 .05 .08 .10 .13 .14 .16 .13 .10 .05 .02
    .002 .01 .02 .05 .08 .10 .13 .15 .16 .14 .10 .04 .02
    .12 .18 .15 .12 .10 .09 .07 .06 .05 .03 .02 .007 .003
    .03 .06 .10 .12 .12 .12 .12 .11 .10 .06 .04 .015 .005""")  # five years each, from 20
BIRTHPLACE = _table("""
    .43 .24 .10 .05 .17 .01
    .38 .38 .06 .11 .04 .03
    .58 .25 .05 .04 .07 .01
    .48 .24 .02 .04 .25 .01
    .63 .28 .03 .025 .033 .002
    .67 .17 .01 .135 .013 .002
    .79 .08 .11 .013 .004 .003
    .945 .015 .036 .002 .001 .001""")
BIRTHPLACE_OF_CLASS = _table("""
    1 .9 1.3 .6 1.7 .5
    1 1 1 .8 1.1 .7
    1 1 .9 1.1 .6 1
    1 1.1 .8 2 .25 2.5
    .8 1.1 .6 3 .3 5""")
BIRTHPLACE_OF_RELATIONSHIP = _table("""
    1 1 1 1 1 1
    1 1 1 1 1 1
    1 1 1 1 1 1
    1 1 1 1 1 1
    .6 1.1 1.6 1.1 1.5 1.5
    .8 1.4 1.8 .7 .8 .2
    .5 1.5 1 1.5 1 2""")
# Columns from here on are OCCUPATIONS, the first of which is decided before.
MENS_OCCUPATION = _table("""
    0 .05 .13 .11 .02 .006 .0005 .004 .22 .10 .14 .21
    0 .13 .25 .14 .03 .02 0 .001 .12 .06 .13 .11
    0 .05 .08 .13 .02 .03 .03 .01 .16 .20 .13 .13
    0 .02 .03 .06 .005 .03 0 .50 .17 .015 .07 .09
    0 .04 .02 .07 .03 .52 .002 .03 .05 .03 .09 .08
    0 .05 .02 .08 .04 .45 .001 .001 .03 .15 .08 .07
    0 .05 .01 .06 .04 .55 .07 .0005 .01 .03 .07 .065
    0 .03 .004 .04 .003 .52 .26 0 .004 .03 .03 .02""")
WOMENS_OCCUPATION = _table("""
    0 .06 .08 .13 .26 .001 0 0 .03 .38 .001 .03
    0 .18 .13 .14 .30 .004 0 0 .004 .22 0 .004
    0 .05 .03 .12 .18 .005 .008 0 .01 .55 0 .015
    0 .08 .01 .20 .35 .03 0 .06 .01 .22 0 .005
    0 .06 .004 .10 .36 .30 .002 0 0 .14 0 .006
    0 .06 .004 .09 .30 .18 0 0 0 .35 0 .003
    0 .07 .003 .08 .38 .30 .006 0 0 .14 0 .003
    0 .04 .001 .05 .25 .40 .05 0 0 .18 0 .001""")
OCCUPATION_OF_CLASS = _table("""
    1 0 .1 .5 .8 1 1 .7 .5 .9 .7 2.6
    1 .02 .4 .7 1.2 1.1 1.1 1.3 1 1.1 1 1.2
    1 .3 1.2 1.6 1 .6 .8 .5 1.5 .9 1.6 .4
    1 4 3 2.2 .2 1.1 .2 .15 .5 .5 .6 .1
    1 7 3 .8 0 .9 0 .1 .5 .6 .3 0""")
OCCUPATION_OF_BIRTHPLACE = _table("""
    1 1 1 1 1 1 1 1 1 1 1 1
    1 1.2 1.1 1 1.1 .9 .3 1 1.1 1 1 1
    1 1 .8 .8 1.8 .8 1 .5 .7 .7 .7 1.8
    1 1.5 1.5 1.1 1 .4 .1 .7 1.3 .9 .8 .8
    1 .4 .3 .8 .6 .5 .1 .9 .9 1 .7 2.4
    1 2 2 1.5 .7 .3 .1 .2 .8 .8 .4 1""")
STATUS_OF_OCCUPATION = _table("""
    0 0 1 0
    .05 .35 .60 0
    .06 .10 .84 0
    .12 .38 .50 0
    .001 .02 .98 0
    .15 .20 .65 0
    .01 .45 .54 0
    .0005 .001 1 0
    .03 .06 .91 0
    .04 .18 .78 0
    .05 .08 .87 0
    .003 .04 .96 0""")
STATUS_OF_CLASS = _table(".02 .4 1 0\n .08 .6 1 0\n .8 1.3 1 0\n 6 2.5 .6 0\n 15 2 .3 0")
STATUS_OF_CROFTERS = _table("1 1 1 0\n .25 5 .6 0")
SERVANTS = _table("""
    1 0 0 0
    .99 .01 0 0
    .95 .045 .005 0
    .62 .30 .07 .01
    .08 .32 .30 .30
    .30 .32 .22 .16
    .86 .11 .03 0""")  # 0, 1, 2, 3 by class, of a farmer who employs, of a crofter
CHILDREN = _table("""
    .36 .38 .20 .05 .01 0 0 0 0 0
    .12 .17 .22 .20 .15 .08 .04 .02 0 0
    .10 .07 .10 .13 .15 .15 .12 .09 .06 .03
    .10 .07 .09 .12 .14 .14 .12 .10 .07 .05
    .12 .08 .10 .12 .14 .13 .11 .09 .06 .05""")  # 0 to 9 born, by the mother's age: to 24, 34, 44, 54, above
BOARDERS = _table("""
    .84 .10 .04 .02
    .82 .11 .05 .02
    .88 .09 .02 .01
    .97 .02 .01 0
    1 0 0 0
    .70 .14 .10 .06""")  # 0 to 3 by class, of the working class of a coalfield
SERVANT_AGE = _table(".06 .38 .26 .18 .08 .04")
SERVANT_AGE_FROM, SERVANT_AGE_YEARS = np.array([13, 15, 20, 25, 35, 50]), np.array([2, 5, 5, 10, 15, 20])
WOMEN_AT_WORK = _table(".85 .80 .72 .40 .10\n .08 .05 .04 .02 .005\n .50 .45 .40 .25 .05")  # marital status × class
LANGUAGE = (
    _table("""
    .10 .55 .35
    .08 .80 .12
    .07 .75 .18
    .05 .50 .45
    .61 .35 .04
    .54 .45 .01
    .43 .55 .02
    .30 .60 .10
    .74 .257 .003
    .52 .479 .001
    .42 .579 .001
    .33 .666 .004
    .88 .12 0
    .88 .12 0
    .90 .10 0
    .90 .10 0
    .9995 .0005 0
    .999 .001 0
    .998 .002 0
    .998 .002 0""")
)  # island, Highland, other Highlander, a Highlander's family elsewhere, others; each at 0, 10, 30, 60
ROOMS = _table("""
    .50 .40 .08 .02 0 0 0 0 0 0 0 0
    .26 .52 .16 .04 .02 0 0 0 0 0 0 0
    .06 .36 .32 .16 .07 .02 .01 0 0 0 0 0
    .005 .05 .17 .25 .22 .14 .08 .05 .02 .01 .005 0
    0 0 .02 .05 .10 .14 .16 .16 .14 .10 .07 .06
    .25 .45 .22 .06 .02 0 0 0 0 0 0 0
    .10 .40 .30 .14 .06 0 0 0 0 0 0 0
    .03 .20 .32 .25 .12 .05 .03 0 0 0 0 0
    0 .03 .12 .20 .22 .17 .12 .08 .04 .02 0 0
    0 0 .02 .05 .10 .14 .16 .16 .14 .10 .07 .06""")  # 1 to 12, by class in tenements, by class elsewhere
