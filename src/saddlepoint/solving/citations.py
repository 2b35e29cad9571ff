"""What to cite for a run: the papers behind the method, and this software, as BibTeX."""

from __future__ import annotations

from dataclasses import fields
from typing import NamedTuple

from saddlepoint.methods.base import Method


class Work(NamedTuple):
    """A publication, in BibTeX's words."""

    kind: str
    author: str
    title: str
    year: int
    where: dict[str, str]

    def bibtex(self, key: str) -> str:
        """The entry."""
        entries = {"author": self.author, "title": f"{{{self.title}}}", "year": str(self.year)} | self.where
        return "\n".join([f"@{self.kind}{{{key},", *(f"  {name} = {{{text}}}," for name, text in entries.items()), "}"])


def _article(author: str, title: str, journal: str, volume: str, pages: str, year: int) -> Work:
    return Work("article", author, title, year, {"journal": journal, "volume": volume, "pages": pages})


def _talk(author: str, title: str, booktitle: str, year: int, **where: str) -> Work:
    return Work("inproceedings", author, title, year, {"booktitle": booktitle} | where)


def _arxiv(author: str, title: str, number: str, year: int) -> Work:
    return Work("misc", author, title, year, {"eprint": number, "archiveprefix": "arXiv"})


NEURIPS = "Advances in Neural Information Processing Systems"
WORKS = {
    "anderson1965": _article(
        "Donald G. Anderson",
        "Iterative procedures for nonlinear integral equations",
        "Journal of the ACM",
        "12",
        "547--560",
        1965,
    ),
    "bai2003": _article(
        "Zhong-Zhi Bai and Gene H. Golub and Michael K. Ng",
        "Hermitian and skew-Hermitian splitting methods for non-Hermitian positive definite linear systems",
        "SIAM Journal on Matrix Analysis and Applications",
        "24",
        "603--626",
        2003,
    ),
    "benzi2005": _article(
        'Michele Benzi and Gene H. Golub and J{\\"o}rg Liesen',
        "Numerical solution of saddle point problems",
        "Acta Numerica",
        "14",
        "1--137",
        2005,
    ),
    "borodich2023": _arxiv(
        "Ekaterina Borodich and Georgiy Kormakov and Dmitry Kovalev and Aleksandr Beznosikov and Alexander Gasnikov",
        "Optimal algorithm with complexity separation for strongly convex-strongly concave composite saddle point "
        "problems",
        "2307.12946",
        2023,
    ),
    "chambolle2011": _article(
        "Antonin Chambolle and Thomas Pock",
        "A first-order primal-dual algorithm for convex problems with applications to imaging",
        "Journal of Mathematical Imaging and Vision",
        "40",
        "120--145",
        2011,
    ),
    "chambolle2016": _article(
        "Antonin Chambolle and Thomas Pock",
        "On the ergodic convergence rates of a first-order primal-dual algorithm",
        "Mathematical Programming",
        "159",
        "253--287",
        2016,
    ),
    "chen2014": _article(
        "Yunmei Chen and Guanghui Lan and Yuyuan Ouyang",
        "Optimal primal-dual methods for a class of saddle point problems",
        "SIAM Journal on Optimization",
        "24",
        "1779--1814",
        2014,
    ),
    "condat2013": _article(
        "Laurent Condat",
        "A primal-dual splitting method for convex optimization involving Lipschitzian, proximable and linear "
        "composite terms",
        "Journal of Optimization Theory and Applications",
        "158",
        "460--479",
        2013,
    ),
    "du2022": _arxiv(
        "Simon S. Du and Gauthier Gidel and Michael I. Jordan and Chris Junchi Li",
        "Optimal extragradient-based bilinearly-coupled saddle-point optimization",
        "2206.08573",
        2022,
    ),
    "eisenstat1983": _article(
        "Stanley C. Eisenstat and Howard C. Elman and Martin H. Schultz",
        "Variational iterative methods for nonsymmetric systems of linear equations",
        "SIAM Journal on Numerical Analysis",
        "20",
        "345--357",
        1983,
    ),
    "higham2022": _article(
        "Nicholas J. Higham and Theo Mary",
        "Mixed precision algorithms in numerical linear algebra",
        "Acta Numerica",
        "31",
        "347--414",
        2022,
    ),
    "jin2022": _talk(
        "Yujia Jin and Aaron Sidford and Kevin Tian",
        "Sharper rates for separable minimax and finite sum optimization via primal-dual extragradient methods",
        "Conference on Learning Theory",
        2022,
    ),
    "korpelevich1976": _article(
        "G. M. Korpelevich",
        "The extragradient method for finding saddle points and other problems",
        "Matecon",
        "12",
        "747--756",
        1976,
    ),
    "kovalev2022": _talk(
        "Dmitry Kovalev and Alexander Gasnikov and Peter Richt{\\'a}rik",
        "Accelerated primal-dual gradient method for smooth and convex-concave saddle-point problems with bilinear "
        "coupling",
        NEURIPS,
        2022,
        volume="35",
    ),
    "li2023": _talk(
        "Chris Junchi Li and Huizhuo Yuan and Gauthier Gidel and Quanquan Gu and Michael I. Jordan",
        "Nesterov meets optimism: Rate-optimal separable minimax optimization",
        "International Conference on Machine Learning",
        2023,
        pages="20351--20383",
    ),
    "lin2015": _talk(
        "Hongzhou Lin and Julien Mairal and Zaid Harchaoui",
        "A universal catalyst for first-order optimization",
        NEURIPS,
        2015,
        volume="28",
    ),
    "lin2020": _talk(
        "Tianyi Lin and Chi Jin and Michael I. Jordan",
        "Near-optimal algorithms for minimax optimization",
        "Conference on Learning Theory",
        2020,
    ),
    "lions1979": _article(
        "Pierre-Louis Lions and Bertrand Mercier",
        "Splitting algorithms for the sum of two nonlinear operators",
        "SIAM Journal on Numerical Analysis",
        "16",
        "964--979",
        1979,
    ),
    "lu2025": Work(
        "article",
        "Haihao Lu and Jinwen Yang",
        "A practical and optimal first-order method for large-scale convex quadratic programming",
        2025,
        {"journal": "Mathematical Programming"},
    ),
    "malitsky2020": _article(
        "Yura Malitsky",
        "Golden ratio algorithms for variational inequalities",
        "Mathematical Programming",
        "184",
        "383--410",
        2020,
    ),
    "mokhtari2020": _talk(
        "Aryan Mokhtari and Asuman Ozdaglar and Sarath Pattathil",
        "A unified analysis of extra-gradient and optimistic gradient methods for saddle point problems: Proximal "
        "point approach",
        "International Conference on Artificial Intelligence and Statistics",
        2020,
    ),
    "odonoghue2015": _article(
        "Brendan O'Donoghue and Emmanuel Cand{\\`e}s",
        "Adaptive restart for accelerated gradient schemes",
        "Foundations of Computational Mathematics",
        "15",
        "715--732",
        2015,
    ),
    "popov1980": _article(
        "Leonid D. Popov",
        "A modification of the Arrow-Hurwicz method for search of saddle points",
        "Mathematical Notes",
        "28",
        "845--848",
        1980,
    ),
    "qi1993": _article(
        "Liqun Qi and Jie Sun",
        "A nonsmooth version of Newton's method",
        "Mathematical Programming",
        "58",
        "353--367",
        1993,
    ),
    "saad1986": _article(
        "Yousef Saad and Martin H. Schultz",
        "GMRES: A generalized minimal residual algorithm for solving nonsymmetric linear systems",
        "SIAM Journal on Scientific and Statistical Computing",
        "7",
        "856--869",
        1986,
    ),
    "thekumparampil2022": _talk(
        "Kiran K. Thekumparampil and Niao He and Sewoong Oh",
        "Lifted primal-dual method for bilinearly coupled smooth minimax optimization",
        "International Conference on Artificial Intelligence and Statistics",
        2022,
    ),
    "tseng1995": _article(
        "Paul Tseng",
        "On linear convergence of iterative methods for the variational inequality problem",
        "Journal of Computational and Applied Mathematics",
        "60",
        "237--252",
        1995,
    ),
    "vu2013": _article(
        "Bang Cong Vu",
        "A splitting algorithm for dual monotone inclusions involving cocoercive operators",
        "Advances in Computational Mathematics",
        "38",
        "667--681",
        2013,
    ),
    "walker2011": _article(
        "Homer F. Walker and Peng Ni",
        "Anderson acceleration for fixed-point iterations",
        "SIAM Journal on Numerical Analysis",
        "49",
        "1715--1735",
        2011,
    ),
    "wang2020": _talk(
        "Yuanhao Wang and Jian Li",
        "Improved algorithms for convex-concave minimax optimization",
        NEURIPS,
        2020,
        volume="33",
    ),
    "xie2021": _arxiv(
        "Guangzeng Xie and Yuze Han and Zhihua Zhang",
        "DIPPA: An improved method for bilinear saddle point problems",
        "2103.08270",
        2021,
    ),
    "zhang2020": _article(
        "Junzi Zhang and Brendan O'Donoghue and Stephen Boyd",
        "Globally convergent type-I Anderson acceleration for nonsmooth fixed-point iterations",
        "SIAM Journal on Optimization",
        "30",
        "3170--3197",
        2020,
    ),
}

BEHIND = {  # the works behind a method, by its name; wrappers add those of the method inside
    "ag-eg": ("du2022",),
    "ag-og": ("li2023",),
    "agraal": ("malitsky2020",),
    "aipfb": ("xie2021",),
    "anderson": ("anderson1965", "walker2011", "zhang2020"),
    "apd": ("chen2014", "lu2025"),
    "apdg": ("kovalev2022",),
    "apfb": ("chambolle2011",),
    "catalyst": ("lin2015", "xie2021"),
    "condat-vu": ("condat2013", "vu2013", "chambolle2016"),
    "dippa": ("xie2021",),
    "direct": ("benzi2005",),
    "dppa": ("xie2021", "bai2003"),
    "extragradient": ("korpelevich1976", "tseng1995", "mokhtari2020"),
    "imex": ("lions1979",),
    "jst": ("jin2022",),
    "krylov": ("eisenstat1983", "saad1986"),
    "lpd": ("thekumparampil2022",),
    "lpd-gs": ("chambolle2016", "thekumparampil2022"),
    "lpd-slide": ("thekumparampil2022", "borodich2023"),
    "minimax-appa": ("lin2020",),
    "newton": ("qi1993",),
    "ogda": ("popov1980", "mokhtari2020"),
    "pbr": ("wang2020",),
    "restarted": ("odonoghue2015", "lu2025"),
    "rhss": ("wang2020", "bai2003"),
    "sliding": ("borodich2023",),
}
YEAR = 2026  # of this version
STORAGE = ("higham2022",)  # behind a copy of A in fewer bits


def citations(method: Method, storage: str | None = None) -> dict[str, str]:
    """BibTeX by key: this software first, then the works behind the method."""
    from saddlepoint import __version__

    software = Work(
        "software",
        "{The saddlepoint developers}",
        "saddlepoint: certified first-order solvers for bilinear saddle-point problems",
        YEAR,
        {"version": __version__},
    )
    found = {"saddlepoint": software.bibtex("saddlepoint")} | _behind(method)
    return found | {key: WORKS[key].bibtex(key) for key in (STORAGE if storage else ())}


def _behind(method: Method) -> dict[str, str]:
    known = BEHIND.get(method.name)
    if known is not None:
        found = {key: WORKS[key].bibtex(key) for key in known}
    else:  # a method of the user's own
        found = {}
        if method.reference:
            found[method.name] = f"@misc{{{method.name},\n  note = {{{method.reference}}},\n}}"
    for option in fields(method):
        inner = getattr(method, option.name)
        if isinstance(inner, Method):
            found |= _behind(inner)
    return found
