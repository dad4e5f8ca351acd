"""The page of a privacy evaluation: well-formed, self-contained, safe against hostile names, the same each time."""

from __future__ import annotations

import copy
import json
import re
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from gaussian_results import make_results

from evaluation.reports import comparison
from evaluation.reports import page as page_module
from evaluation.reports.comparison import paired_rates
from evaluation.reports.outcomes import main_outcomes
from evaluation.reports.page import write_page
from evaluation.reports.pictures import inline
from evaluation.reports.results import parse_results
from evaluation.uncertainty import Interval
from spkbase.errors import DataError
from spkbase.files import write_json
from spkver.evaluation_cli import main

pytestmark = pytest.mark.whole

VOID = {
    "area",
    "base",
    "br",
    "col",
    "embed",
    "hr",
    "img",
    "input",
    "link",
    "meta",
    "source",
    "track",
    "wbr",
}
STYLE = Path(page_module.__file__).with_name("style.css").read_text("utf-8")


class Reader(HTMLParser):
    """Tags in their nesting, ids, references and text."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attributes]
        assert len(names) == len(set(names)), f"{tag} repeats an attribute"
        self.tags.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        assert "svg" in self.open, f"{tag} closes itself outside SVG"
        self.tags.append((tag, dict(attributes)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"{tag} was not open"
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1:] != ["style"]:
            self.words.append(data)

    @property
    def text(self) -> str:
        return re.sub(r"\s+", " ", " ".join(self.words)).replace("\N{NO-BREAK SPACE}", " ")

    def all_of(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


def read(page: str) -> Reader:
    reader = Reader()
    reader.feed(page)
    reader.close()
    assert reader.open == []
    return reader


def render_page(results: dict[str, Any], **options: Any) -> str:
    """The page of the contents of results.json."""
    return page_module.render_page(parse_results(results), **options)


def render_comparison(sources: list[tuple[dict[str, Any], Any]], **options: Any) -> str:
    """The page that compares the contents of several results.json."""
    return comparison.render_comparison(
        [(parse_results(raw), folder) for raw, folder in sources], **options
    )


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], Path]:
    folder = tmp_path_factory.mktemp("results")
    return make_results(folder, attackers=("gmm-ubm", "gmm-svm")), folder


@pytest.fixture(scope="module")
def page(made: tuple[dict[str, Any], Path]) -> str:
    return render_page(made[0], folder=made[1])


@pytest.fixture
def results(made: tuple[dict[str, Any], Path]) -> dict[str, Any]:
    return copy.deepcopy(made[0])


def bare(results: dict[str, Any]) -> dict[str, Any]:
    """Without plots, which take time."""
    for one in results["conditions"]:
        one.update(scores=None, linkability=None, speakers=[])
    return results | {"utility": {}}


def test_ids_are_unique_and_every_reference_resolves(page: str) -> None:
    reader = read(page)
    ids = [attributes["id"] for _, attributes in reader.tags if "id" in attributes]
    assert [name for name, count in Counter(ids).items() if count > 1] == []
    named = re.findall(r"url\(#([^)]+)\)", page) + re.findall(r'href="#([^"]+)"', page)
    assert named
    assert set(named) <= set(ids)


def test_nothing_is_fetched_and_nothing_runs(page: str) -> None:
    reader = read(page)
    assert re.findall(r"https?:|//[a-z]|@import|src=|javascript:|xmlns", page) == []
    assert {tag for tag, _ in reader.tags} & {
        "script",
        "link",
        "iframe",
        "object",
        "img",
        "base",
        "form",
    } == set()
    assert [name for _, one in reader.tags for name in one if name.startswith("on")] == []
    (policy,) = [
        one["content"]
        for one in reader.all_of("meta")
        if one.get("http-equiv") == "Content-Security-Policy"
    ]
    assert policy is not None
    assert policy.startswith("default-src 'none'")


def test_figures_tables_and_regions_have_accessible_names(page: str) -> None:
    reader = read(page)
    pictures = reader.all_of("svg")
    # DET, ZEBRA and linkability; the speakers; two measures of utility
    assert len(pictures) == 6
    assert all(one["role"] == "img" and one["aria-label"] for one in pictures)
    assert len({one["aria-label"] for one in pictures}) == 6
    assert len(reader.all_of("caption")) == len(reader.all_of("table")) > 4
    assert all(one.get("scope") in ("col", "row", "rowgroup") for one in reader.all_of("th"))
    assert all(one["aria-label"] for _, one in reader.tags if one.get("role") == "region")


def test_the_page_begins_with_the_verdict_and_the_rate_of_the_strongest_attacker(
    made: Any, page: str
) -> None:
    results, _ = made
    rates = [
        (one["eer"]["rocch"], one["attacker"], one["scenario"])
        for one in results["conditions"]
        if one["scenario"] != "original"
    ]
    rate, attacker, scenario = min(rates)
    head = read(page[: page.index("</header>")] + "</header></main></div></body></html>").text
    assert f"{100 * rate:.1f} %" in head
    assert attacker not in head  # names appear only in the tables for experts
    assert f"Strongest attacker: {attacker}, {scenario}." in read(page).text
    assert "1 warning about this result Attackers that know more are weaker" in head


def test_every_equal_error_rate_equals_that_of_the_results(made: Any, page: str) -> None:
    text = read(page).text
    for one in made[0]["conditions"]:
        ends = one["intervals"]["eer.rocch"]
        low, high = 100 * ends["low"], 100 * ends["high"]
        assert f" {100 * one['eer']['rocch']:.1f} {low:.1f}\N{EN DASH}{high:.1f} " in text


def test_the_worst_protected_speakers_come_first(results: dict[str, Any]) -> None:
    results["conditions"] = [one for one in results["conditions"] if one["gender"] == "all"]
    for one in bare(results)["conditions"]:
        one["speakers"] = [
            {
                "speaker": "private",
                "linkability_mean": 0.1,
                "eer": 0.5,
                "gender": "f",
                "rank": 5.5,
                "n_target": 4,
            },
            {
                "speaker": "unknown",
                "linkability_mean": None,
                "eer": None,
                "gender": "",
                "rank": None,
            },
            {
                "speaker": "exposed",
                "linkability_mean": 0.95,
                "eer": 0.01,
                "gender": "m",
                "rank": 1,
                "n_target": 4,
            },
        ]
        one["speakers"][0] |= {"first": 0.5, "others_first": 0.5, "n_nontarget": 40}
        one["speakers"][2] |= {"first": 1.0, "others_first": 0.025, "n_nontarget": 40}
    text = read(render_page(results, folder=".")).text
    # on the first screen, and where the speakers are listed
    assert text.count("1 of 2 speakers is found") == 2
    assert "(0.0 by chance), in most recordings (worst: 30.9–97.5 %)." in text
    # all of 4 own recordings rank first: by Clopper and Pearson at 97.5 % at least 33 %, minus 2 % of other people's
    assert "in 98 % more of the own recordings than of other people's" in text
    assert "the largest true difference is 31 % to 98 %" in text
    exposed = text.index("exposed 0.95 1 100 % others 2 % 1.0 % 4 male")
    assert exposed < text.index("private 0.10 5.5 50 % others 50 % 50.0 % 4 female")
    assert text.index("private 0.10") < text.index("unknown n/a n/a n/a n/a")


def test_unknown_values_are_shown_as_unknown(results: dict[str, Any]) -> None:
    value = None
    for one in bare(results)["conditions"]:
        one.update(
            eer={"rocch": value},
            zebra={"population": value, "individual": value, "tag": None},
            min_cllr=value,
        )
        one.update(intervals={"eer.rocch": {"low": value, "high": value}}, n_enrolled=value)
    page = render_page(results, folder=".")
    text = read(page).text
    assert "No result" in text
    assert "n/a" in text
    assert not re.search(r"\bnan\b|None|<b>", text)


def test_the_wording_depends_on_the_intervals_of_scenarios_and_data_sets() -> None:
    def condition(dataset: str, scenario: str, *eer: float) -> dict[str, Any]:
        names = {"dataset": dataset, "gender": "all", "scenario": scenario, "attacker": "a"}
        ends = dict(zip(("low", "high"), eer[1:], strict=True))
        return names | {"eer": {"rocch": eer[0]}, "intervals": {"eer.rocch": ends}}

    rows = [
        condition("one", "original", 0.01, 0.005, 0.02),
        condition("one", "ignorant", 0.25, 0.15, 0.28),
        condition("one", "semi-informed", 0.24, 0.21, 0.38),
        condition("two", "semi-informed", 0.35, 0.32, 0.39),
    ]
    perfect = {"mean": 0.432, "low": 0.395}
    place = {
        "dataset": "one",
        "gender": "all",
        "scenario": "ignorant",
        "strongest": "a",
        "eer": 0.25,
    }
    stated = place | {"low": 0.15, "high": 0.28, "minimum_over_scenarios": {"perfect": perfect}}
    page = render_page({"format": 1, "conditions": rows, "summary": [stated]}, folder=".")
    # on the first screen and in detail
    assert page.count('class="perfect" style="left:86.4%"') == 2
    text = read(page).text
    assert " Weak to moderate protection " in text
    assert (
        "24.0 % of decisions are wrong (equal error rate), the smallest on 2 data sets, interval 15.0\N{EN DASH}28.3 %"
        in text
    )
    assert "the true level may lie anywhere from weak to moderate" in text
    assert "a perfect anonymiser would show about 43 % on these trials" in text
    assert (
        "would measure about 43.2 % here, because the best of 1 attackers in each scenario is picked"
        in text
    )
    assert "and less than 39.5 % in 1 of 20 cases" in text
    rows[1]["intervals"]["eer.rocch"] = {"low": 0.09, "high": 0.28}
    rows[1]["n_enrolled"] = rows[2]["n_enrolled"] = 16
    text = read(render_page({"format": 1, "conditions": rows}, folder=".")).text
    assert " At most moderate protection " in text
    assert (
        "About 20 speakers in place of 16 would narrow the interval to two of the five levels"
        in text
    )
    assert "perfect anonymis" not in text


def test_the_wording_follows_the_worst_list_and_the_worse_of_open_and_closed_sets() -> None:
    """Pooled scores of lists with other offsets look private, and so do those with an offset for each utterance."""

    def page(closed: float, centred: float | None = None, **rates: float) -> str:
        rows = [
            {
                "dataset": "d",
                "gender": gender,
                "scenario": "ignorant",
                "attacker": "a",
                "eer": {"rocch": rate},
            }
            | {"intervals": {"eer.rocch": {"low": rate, "high": rate}}}
            | {
                "closed_set": {
                    "eer": {"value": closed, "low": closed, "high": closed},
                    "identification": {"value": 1},
                }
            }
            | {"centred": centred and {"value": centred, "low": centred, "high": centred}}
            for gender, rate in rates.items()
        ]
        return read(render_page({"format": 1, "conditions": rows}, folder=".")).text

    text = page(0.5, f=0.008, m=0.3, all=0.165)
    assert " Very weak protection " in text
    assert " 0.8 % of decisions are wrong (equal error rate) on d, female" in text
    text = page(0.016, f=0.35, m=0.35, all=0.336)
    assert " Very weak protection " in text
    assert "is one of the enrolled (closed set)" in text.replace("\N{NO-BREAK SPACE}", " ")
    # the first screen has one rate
    assert " 1.6 % of decisions are wrong (equal error rate) on d," in text
    assert "33.6" not in text[: text.index("The verdict in detail")]
    assert "the strongest attacker is wrong in 1 of 62 decisions" in text
    assert "enrolled (closed set)" not in page(0.5, f=0.35, m=0.35, all=0.336)
    text = page(0.5, centred=0.001, f=0.35, m=0.35, all=0.404)
    assert " Very weak protection " in text
    assert "the strongest attacker is wrong in 1 of 1,000 decisions" in text
    assert "it subtracts from the scores of each model their mean (whole-list)" in text


@pytest.mark.parametrize(("individual", "told"), [(0.87506, True), (0.5, False)])
def test_evidence_at_the_ceiling_is_noted(individual: float, told: bool) -> None:
    names = {
        "dataset": "d",
        "gender": "all",
        "scenario": "ignorant",
        "attacker": "a",
        "eer": {"rocch": 0.1},
    }
    zebra = {"population": 0.7, "individual": individual, "individual_ceiling": 0.87506, "tag": "A"}
    text = read(
        render_page({"format": 1, "conditions": [names | {"zebra": zebra}]}, folder=".")
    ).text
    assert ("category A, at the ceiling that the number of trials imposes" in text) == told


def test_the_verdict_mentions_session_channel_and_language() -> None:
    names = {"dataset": "d", "gender": "all", "scenario": "ignorant", "attacker": "a"}
    results = {"format": 1, "conditions": [names | {"eer": {"rocch": 0.3}}]}
    text = read(render_page(results, folder=".")).text
    beside = text[: text.index("equal error rate") + 2000]
    assert "Nobody measured what sessions and channels tell" in beside
    assert "in languages on which they were not trained" in beside
    without_speech = names | {"scenario": "original", "attacker": "session", "eer": {"rocch": 0.18}}
    text = read(
        render_page(
            {"format": 1, "conditions": [*results["conditions"], without_speech]}, folder="."
        )
    ).text
    assert (
        "Noise and properties of files give speakers away here"
        in text[: text.index("The verdict in detail")]
    )
    assert "18 % on the original recordings" in text


def test_checks_can_forbid_a_verdict_and_the_badge_mentions_missing_networks() -> None:
    names = {"dataset": "d", "gender": "all", "scenario": "ignorant", "attacker": "a"}
    results = {
        "format": 1,
        "conditions": [
            names | {"eer": {"rocch": 0.5}, "intervals": {"eer.rocch": {"low": 0.45, "high": 0.5}}}
        ],
    }
    results["attackers_run"] = {"networks": []}
    assert (
        " Strong protection (no neural attacker was run) "
        in read(render_page(results, folder=".")).text
    )
    results["sanity"] = [{"level": "error", "check": "pairs", "text": "Names are wrong."}]
    text = read(render_page(results, folder=".")).text
    assert " No verdict: it is not certain that the files match " in text
    assert "Strong protection" not in text
    assert "enough for this verdict" not in text
    # if an attacker recognised a speaker, it did so whatever else the files hold
    results["conditions"][0] |= {
        "eer": {"rocch": 0.02},
        "intervals": {"eer.rocch": {"low": 0.0, "high": 0.06}},
    }
    text = read(render_page(results, folder=".")).text
    assert (
        " At most very weak protection, otherwise no verdict: it is not certain that the files match "
        in text
    )


def test_the_worst_data_set_decides_and_original_speech_is_not_judged() -> None:
    def condition(dataset: str, scenario: str, eer: float) -> dict[str, Any]:
        return {
            "dataset": dataset,
            "gender": "all",
            "scenario": scenario,
            "attacker": "a",
            "eer": {"rocch": eer},
        }

    rows = [
        condition("one", "original", 0.01),
        condition("one", "ignorant", 0.45),
        condition("two", "ignorant", 0.25),
    ]
    assert (
        " Moderate protection by the point"
        in read(render_page({"format": 1, "conditions": rows}, folder=".")).text
    )
    text = read(render_page({"format": 1, "conditions": rows[:1]}, folder=".")).text
    assert " Not anonymised " in text
    assert "protection " not in text[: text.index("The verdict in detail")]


def test_simulated_speech_is_announced_at_the_top(results: dict[str, Any]) -> None:
    for simulated in (False, True):
        text = read(render_page(bare(results) | {"simulated": simulated}, folder=".")).text
        assert ("SIMULATED speech" in text[: text.index("Results by scenario")]) == simulated


@pytest.mark.parametrize("damage", ["missing", "foreign"])
def test_unreadable_scores_are_named_and_the_others_drawn(
    made: tuple[dict[str, Any], Path], tmp_path: Path, damage: str
) -> None:
    results = copy.deepcopy(made[0])
    results["conditions"] = [one for one in results["conditions"] if one["gender"] == "all"][:3]
    results = bare(results)
    results["conditions"][0]["scores"] = "scores"
    results["conditions"][0]["key"] = str(made[1] / made[0]["conditions"][0]["key"])
    results["conditions"][1]["scores"], results["conditions"][1]["key"] = "other", "key"
    if damage == "foreign":
        (tmp_path / "scores").write_text("a b 1.0\n", "utf-8")
    (tmp_path / "other").write_text("m s 1.5\nm t 0.5\nn s -1\n", "utf-8")
    (tmp_path / "key").write_text("m s target\nm t target\nn s nontarget\n", "utf-8")
    results["conditions"] = [
        results["conditions"][0],
        results["conditions"][1] | {"scenario": "ignorant"},
    ]
    text = read(render_page(results | {"summary": []}, folder=tmp_path)).text
    assert "No curve for original, gmm-ubm" in text
    assert "Detection error trade-off: " in text


@pytest.mark.parametrize("name", ["../secret", "link"])
def test_files_outside_the_folder_of_the_results_are_not_read(
    results: dict[str, Any], tmp_path: Path, name: str
) -> None:
    """Results of somebody else must not bring files of this machine into a report that is then passed on."""
    folder = tmp_path / "results"
    (folder / "inside").mkdir(parents=True)
    (tmp_path / "secret").write_text("root:x:0:0\n", "utf-8")
    (folder / "link").symlink_to(tmp_path / "secret")
    results = bare(results)
    results["conditions"] = [results["conditions"][0] | {"scores": name, "key": name}]
    text = render_page(results | {"summary": []}, folder=folder)
    assert "outside their folder" in text
    assert "root:" not in text


def test_the_same_results_give_the_same_bytes(
    made: tuple[dict[str, Any], Path], page: str, tmp_path: Path
) -> None:
    write_page(
        parse_results(json.loads(json.dumps(made[0]))), tmp_path / "report.html", folder=made[1]
    )
    assert (tmp_path / "report.html").read_text("utf-8") == page
    assert not re.search(r"20\d\d-\d\d-\d\d", page)


def luminance(colour: str) -> float:
    """Relative luminance, as WCAG 2 defines it."""
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (
        one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4 for one in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("dark", [False, True])
def test_every_text_has_sufficient_contrast(dark: bool) -> None:
    """At least 4.5 to 1, as WCAG 2 asks of text."""
    blocks = re.findall(r":root \{([^}]*)\}", STYLE)
    colours = {
        name: value
        for block in blocks[: 1 + dark]
        for name, value in re.findall(r"--([\w-]+): (#\w{6})", block)
    }
    assert len(blocks) == 2
    assert colours["paper"] == ("#1c2126" if dark else "#ffffff")
    pairs = [
        (text, ground) for text in ("ink", "soft", "accent") for ground in ("paper", "tint", "page")
    ]
    pairs += [("warning", "warning-tint"), ("warning", "paper"), ("fine", "paper")]
    shades = [(colours[text], colours[ground]) for text, ground in pairs]
    shades += [("#ffffff", colours[f"level-{level}"]) for level in (0, 1, 2, 3, 4, "none")]
    for text, ground in shades:
        light, deep = sorted((luminance(text), luminance(ground)), reverse=True)
        assert (light + 0.05) / (deep + 0.05) >= 4.5, (text, ground)


def test_svg_keeps_its_shape_and_gets_unique_ids() -> None:
    svg = (
        '<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
        'width="9pt" viewBox="0 0 9 9"><metadata>m</metadata><!-- c --><defs><style>* {fill: red}</style>'
        '<path id="a" d="M 0 0 \nL 1 1"/></defs><g id="b" clip-path="url(#a)"><use xlink:href="#a" '
        'style="fill: #0072b2; stroke: #123456"/><image xlink:href="data:image/png;base64,i"/></g></svg>'
    )
    drawn = inline(svg, name="p1", label='a "b"')
    assert drawn == (
        '<svg viewBox="0 0 9 9" role="img" aria-label="a &quot;b&quot;" class="plot">'
        '<defs><path d="M 0 0 L 1 1" id="p1-a" /></defs><g clip-path="url(#p1-a)">'
        '<use style="fill: var(--plot-blue, #0072b2); stroke: #123456" href="#p1-a" />'
        '<image href="data:image/png;base64,i" /></g></svg>'
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"\xff", r"results.json:1: expected text in UTF-8"),
        (b"[1]", r"results.json: expected a JSON object, got list"),
        (b'{"format": 2}', r"results.json: expected results of format 1, got 2"),
        (
            b'{"format": 1, "conditions": [7]}',
            r"results.json: expected results of format 1 .* damaged",
        ),
        (
            b'{"format": 1, "conditions": [{"dataset": "d"}]}',
            r"results.json: condition 1: expected strings dataset, gender",
        ),
    ],
)
def test_malformed_results_give_one_message(tmp_path: Path, text: bytes, message: str) -> None:
    path = tmp_path / "results.json"
    path.write_bytes(text)
    done = CliRunner().invoke(main, ["page", str(path)])
    assert done.exit_code == 2
    assert re.search(message, done.output)
    assert "Traceback" not in done.output
    assert not (tmp_path / "report.html").exists()


def test_the_command_writes_the_page_into_the_folder_of_the_results(
    results: dict[str, Any], tmp_path: Path
) -> None:
    write_json(tmp_path / "results.json", bare(results))
    done = CliRunner().invoke(main, ["page", str(tmp_path / "results.json")])
    assert done.exit_code == 0
    assert done.output.endswith(f"wrote {tmp_path / 'report.html'}\n")
    assert (
        "no curve for semi-informed, gmm-svm: the results name no scores with their key"
        in done.output
    )
    read((tmp_path / "report.html").read_text("utf-8"))
    done = CliRunner().invoke(
        main, ["page", str(tmp_path / "results.json"), "-o", str(tmp_path / "deep" / "p.html")]
    )
    assert done.exit_code == 0
    deep = (tmp_path / "deep" / "p.html").read_text("utf-8")
    # the same, except that links to scores lead one folder up
    assert deep.replace('href="../', 'href="') == (tmp_path / "report.html").read_text("utf-8")


def test_each_attacker_is_explained_in_one_line(results: dict[str, Any]) -> None:
    renamed = [
        condition | {"attacker": condition["attacker"].replace("gmm-ubm", "<mine>")}
        for condition in results["conditions"]
    ]
    run = {"explained": {"gmm-svm": "a support vector machine for each speaker"}}
    page = render_page(
        bare(results) | {"conditions": renamed, "summary": [], "attackers_run": run}, folder="."
    )
    lines = re.findall(r'<ul class="explained">(.*?)</ul>', page, flags=re.DOTALL)[0].split(
        "</li>"
    )[:-1]
    assert len(lines) == 2
    assert (
        lines[0]
        .strip()
        .startswith("<li><strong>&lt;mine&gt;</strong>: a user-supplied attacker or setting")
    )
    assert "support vector machine" in lines[1]


def test_several_anonymisers_are_compared(
    results: dict[str, Any], made: Any, tmp_path: Path
) -> None:
    folder = made[1]
    write_json(folder / "results.json", results)
    other = dict(results) | {"anonymiser": {"name": "<b>other</b>"}}
    write_json(folder / "other.json", other)
    arguments = [
        str(folder / "results.json"),
        str(folder / "other.json"),
        "-o",
        str(tmp_path / "c.html"),
    ]
    done = CliRunner().invoke(main, ["page", *arguments])
    assert done.exit_code == 0, done.output
    page = (tmp_path / "c.html").read_text("utf-8")
    read(page)
    assert "2 anonymisers side by side" in page
    assert "<b>" not in page
    assert page.count("Anonymiser: mcadams") == 1
    assert "&lt;b&gt;other&lt;/b&gt;: semi-informed" not in page  # text is drawn as paths
    targets = re.findall(r'href="#([^"]+)"', page)
    names = re.findall(r' id="([^"]+)"', page)
    assert len(names) == len(set(names))
    assert set(targets) <= set(names)
    assert page == render_comparison([(results, folder), (other, folder)])
    twice = render_comparison([(bare(results), folder)] * 2)
    assert "mcadams (1)" in twice
    assert "mcadams (2)" in twice
    with pytest.raises(DataError, match="at least 2 anonymisers"):
        render_comparison([(results, folder)])


def test_a_comparison_notes_differences_of_method(made: tuple[dict[str, Any], Path]) -> None:
    """Other attackers, other trials or fewer draws make another figure, which is not the anonymiser's doing."""
    results, folder = made
    results = bare(copy.deepcopy(results))
    alike = render_comparison([(results, folder), (results, folder)])
    assert "Not measured in the same way" not in alike
    anonymiser = dict(results["anonymiser"]) | {"name": "quick", "training_draws": 4}
    first = dict(results) | {"anonymiser": dict(results["anonymiser"]) | {"training_draws": 1}}
    rows = [
        dict(row) | {"n_target": 7, "n_nontarget": 70, "n_enrolled": 3}
        for row in results["conditions"]
    ]
    other = {
        "anonymiser": anonymiser,
        "simulated": not results.get("simulated", False),
        "summary": [],
    }
    page = render_comparison(
        [(first, folder), (dict(results) | other | {"conditions": rows}, folder)]
    )
    read(page)
    assert "Not measured in the same way" in page
    assert "Anonymised versions of the training speech: mcadams 1; quick 4." in page
    assert "quick 3 speakers, 7 and 70 trials" in page
    assert "Simulated speech: " in page
    assert "Attackers of" not in page
    # what is missing in the results is not compared
    silent = {name: value for name, value in other.items() if name != "anonymiser"} | {
        "anonymiser": {"name": "quick"}
    }
    assert "Anonymised versions of" not in render_comparison(
        [(first, folder), (dict(results) | silent, folder)]
    )


def test_anonymisers_are_compared_by_their_common_attackers(made: Any, tmp_path: Path) -> None:
    """An attacker that inverts one anonymiser decides its protection, and no comparison."""
    results, folder = bare(copy.deepcopy(made[0])), made[1]
    undone = next(
        row
        for row in results["conditions"]
        if row["scenario"] == "semi-informed" and row["gender"] == "all"
    )
    undone = undone | {
        "attacker": "x-undone",
        "eer": undone["eer"] | {"rocch": 0.006},
        "intervals": {},
    }
    alone = undone | {
        "scenario": "reversal",
        "attacker": "x-reversed",
        "eer": undone["eer"] | {"rocch": 0.1},
    }
    first = results | {
        "conditions": [*results["conditions"], undone, alone],
        "anonymiser": {"name": "known"},
    }
    page = read(render_comparison([(first, folder), (results, folder)])).text
    told = "known was also attacked by x-reversed, x-undone: the smallest equal error rate is 0.6 %"
    assert f"{told} (x-undone, libri_test, semi-informed)." in page
    table = page.partition(told)[2].partition("Paired differences")[0]
    assert table.count("Very weak protection by the point estimate") == 1
    assert "0.6 %" not in table
    assert "reversal" not in table.partition("Anonymiser Protection")[2]
    assert "Compared by the attackers" not in render_comparison(
        [(results, folder), (results, folder)]
    )
    other = [row | {"attacker": f"y-{row['attacker']}"} for row in results["conditions"]]
    with pytest.raises(DataError, match=r"libri_test, f, original known has .*; mcadams has y-gmm"):
        render_comparison([(first, folder), (results | {"conditions": other}, folder)])


def test_differences_use_the_same_trials_and_change_sign_with_the_order(
    made: Any, tmp_path: Path
) -> None:
    """Of each attacker the difference of the stated rates, significant where the interval excludes 0."""
    (results, folder), other = (
        made,
        make_results(tmp_path, attackers=("gmm-ubm", "gmm-svm"), seed=1),
    )
    systems = {"one": parse_results(results), "two": parse_results(other)}
    folders = {"one": folder, "two": tmp_path}
    ((other_name, where, gaps, problem),) = paired_rates(systems, folders)
    assert (other_name, where, problem) == ("two", "libri_test, semi-informed", "")
    assert {name.partition(",")[0] for name in gaps} >= {"gmm-ubm", "gmm-svm"}
    # the gap of the verdict comes first
    assert ["strongest of" in name for name in gaps] == [True, *[False] * (len(gaps) - 1)]
    turned = paired_rates(dict(reversed(systems.items())), folders)[0][2]
    for attacker, gap in gaps.items():
        if not attacker.startswith("strongest"):
            name = attacker.partition(",")[0]
            rates = [
                one.eer("libri_test", "all", "semi-informed", name).value
                for one in systems.values()
            ]
            assert gap.value == pytest.approx(rates[1] - rates[0], abs=1e-12)
        assert (gap.p_value < 0.05) == (gap.low > 0 or gap.high < 0)
    for gap, back in zip(gaps.values(), turned.values(), strict=True):
        assert (gap.value, gap.low, gap.high) == pytest.approx(
            (-back.value, -back.high, -back.low), abs=1e-12
        )
    (tmp_path / other["conditions"][-1]["key"]).unlink()
    ((*_, gaps, problem),) = paired_rates(systems, folders)
    assert not gaps
    assert "No paired differences: " in problem


def test_score_files_that_have_changed_are_named(page: str, tmp_path: Path) -> None:
    assert "have changed" not in page
    results = make_results(
        tmp_path, genders=("all",), scenarios=("original", "semi-informed"), attackers=("gmm-svm",)
    )
    semi = results["conditions"][-1]
    path = tmp_path / semi["scores"]
    path.write_bytes((tmp_path / results["conditions"][0]["scores"]).read_bytes())
    text = read(render_page(results, folder=tmp_path)).text
    rates = f"EER of {100 * results['conditions'][0]['eer']['rocch']:.2f} %, the results state"
    assert (
        f"The score files of semi-informed, gmm-svm have changed since the results were made: they give an {rates}"
        in text
    )


# --- averages -------------------------------------------------------------------------------------


def with_averages(results: dict[str, Any], targets: list[float], **average: Any) -> dict[str, Any]:
    results["config"] = {
        "challenge": {"name": "VoicePrivacy 2024", "targets": targets, "weights": {}}
    }
    row = {"dataset": "libri", "split": "test", "reading": "speechbrain"}
    results["averages"] = [
        row
        | {"scenario": "semi-informed", "eer_percent": 23.456, "targets_reached": [10, 20]}
        | average,
        row | {"scenario": "original", "eer_percent": 1.25, "targets_reached": []},
    ]
    return bare(results)


def test_averages_name_the_highest_target_reached(results: dict[str, Any]) -> None:
    reader = read(render_page(with_averages(results, [10, 20, 30, 40]), folder="."))
    text = reader.text[reader.text.index("Averages of VoicePrivacy 2024") :]
    assert "follow the definition of 'speechbrain'" in text
    assert "Minimum targets: 10 %, 20 %, 30 %, 40 %" in text
    row = text[text.index("libri test") :]
    # original speech comes first, and is not compared with targets
    assert row.index("1.2 %") < row.index("23.5 % reaches 20 %")
    assert "reaches" not in row[: row.index("23.5 %")]
    assert "averages" in [one.get("id") for one in reader.all_of("section")]


def test_averages_name_their_attacker_and_interval(results: dict[str, Any]) -> None:
    ends = {"attacker": "strongest", "reading": "rocch", "low_percent": 18.5, "high_percent": 31.5}
    text = read(render_page(with_averages(copy.deepcopy(results), [20], **ends), folder=".")).text
    assert "over the sexes, of the strongest attackers. Minimum" in text
    assert "23.5 % 18.5 % to 31.5 % reaches 20 %" in text
    text = read(render_page(with_averages(results, [20], attacker="campplus"), folder=".")).text
    assert "Average equal error rate of the attacker campplus" in text
    assert (
        "of the strongest attackers"
        not in text[text.index("Averages of") : text.index("Warnings and checks")]
    )


# --- what a busy reader needs besides the number --------------------------------------------------


def test_linkability_within_each_sex_is_labelled(
    results: dict[str, Any],
) -> None:
    curve = {"sizes": [2, 5], "linkability": [0.9, 0.8], "low": [0.8, 0.7], "high": [1, 0.9]}
    results = bare(results)
    for n_enrolled, said in ((5, "80 % of 5 "), (10, "80 % of 5, of their sex ")):
        for one in results["conditions"]:
            one.update(linkability=curve, n_enrolled=n_enrolled)
        assert said in read(render_page(results, folder=".")).text + " "


# --- choices, worst cases and voices --------------------------------------------------------------


def test_conversations_have_a_table_a_picture_and_a_line_on_the_first_screen(
    results: dict[str, Any],
) -> None:
    single = read(render_page(results, folder="nowhere")).text
    assert "recordings of one person" not in single
    several = copy.deepcopy(results["conditions"])
    for condition in several:
        condition["utterances"] = 5
        condition["eer"]["rocch"] /= 4
    page = render_page(results | {"conversations": several}, folder="nowhere")
    text = read(page).text
    assert "With 5 recordings of one person" in text
    section = page.partition('id="conversations"')[2].partition("</section>")[0]
    assert "Several recordings of one speaker" in section
    for condition in main_outcomes(parse_results(results).outcomes):
        for number, rate in ((1, condition.eer.value), (5, condition.eer.value / 4)):
            assert f"{100 * rate:.1f}" in section, number


def test_the_chosen_backends_show_their_error_rate_over_folds(results: dict[str, Any]) -> None:
    chain = {
        "chain": "[cosine]",
        "eer": [0.1, 0.3],
        "cllr": [0.5, 0.7],
        "mean_eer": 0.2,
        "above_best": 0.05,
    }
    choice = {
        "attacker": "<b>",
        "training": "set",
        "vectors": 1200,
        "speakers": 20,
        "chosen": "[cosine]",
    }
    choice |= {
        "why": "it is simple",
        "folds": [{"number": 1, "speakers": ["a", "b"], "targets": 7, "trials": 14}],
    }
    choice |= {
        "chains": [
            chain | {"standard_error": 0.01},
            {"chain": "[lda: 9, cosine]", "why": "too few"},
        ]
    }
    # there are no folds
    words = {
        "attacker": "content",
        "training": "set",
        "chosen": "cosine of words",
        "why": "of the words",
    }
    page = render_page(bare(results) | {"choices": [words, choice]}, folder=".")
    section = page[page.index('<section id="choices"') :]
    for text in ("&lt;b&gt;", "set", "[cosine]", "20.00\N{NO-BREAK SPACE}%"):
        assert text in section, text


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        (
            {},
            "Network of tuned, tuned-plda, trained on set: 1,040 steps, 201 speakers, 4 versions of each recording;"
            " equal error rate of speakers held out 31.2 % before, 6.4 % after; torch 2.13.0, seed 3.",
        ),
        (
            {"steps": 0, "eer_after": 0.312, "versions": 1, "torch": None},
            "Network of tuned, tuned-plda, trained on set: 0 steps, 201 speakers, 1 version of each recording; equal"
            " error rate of speakers held out 31.2 % before, 31.2 % after (training did not help, so the network is"
            " used as it was).",
        ),
    ],
)
def test_a_line_describes_how_a_network_was_trained(
    results: dict[str, Any], changes: dict[str, Any], expected: str
) -> None:
    network = {
        "folder": "attackers/set/network-1",
        "training": "set",
        "attackers": ["tuned", "tuned-plda"],
        "seed": 3,
        "steps": 1040,
        "eer_before": 0.312,
        "eer_after": 0.064,
        "speakers": 201,
        "versions": 4,
        "torch": "2.13.0",
    }
    contents = bare(results) | {"trained_networks": [network | changes]}
    assert expected in read(render_page(contents, folder=".")).text
    unknown = dict.fromkeys(network, None) | {"training": "set", "attackers": ["own"]}
    contents = bare(results) | {"trained_networks": [unknown]}
    assert "Network of own, trained on set." in read(render_page(contents, folder=".")).text


def similarity(**changes: Any) -> dict[str, Any]:
    matrix = {"speakers": ["a", "b"], "n_trials": 9, "values": [[0.9, 0.1], [0.2, None]]}
    entry = {
        "dataset": "libri_test",
        "gender": "all",
        "scenario": "lazy-informed",
        "attacker": "gmm-svm",
    }
    entry |= {
        "deid": {"value": 0.75, "low": 0.7, "high": 0.8},
        "matrices": dict.fromkeys(("oo", "oa", "aa"), matrix),
    }
    return (
        entry
        | {"gain_of_voice_distinctiveness": {"value": -3.25, "low": -4.0, "high": None}}
        | changes
    )


def test_the_page_shows_worst_cases_ranks_and_voice_similarity(results: dict[str, Any]) -> None:
    readings = {name: {"llr": 2.302585, "log10": 1.0} for name in ("pav", "gaussian", "student")}
    for one in bare(results)["conditions"]:
        one.update(
            worst_case=readings | {"ranks": {"llr": "inf", "log10": "inf"}}, cmc=[0.5, 0.75, 1.0]
        )
    page = render_page(results | {"utility": {}, "similarity": [similarity()]}, folder=".")
    worst, alike = (
        page.partition(f'<section id="{name}"')[2].partition("</section>")[0]
        for name in ("worst", "voices")
    )
    assert worst.count(">1.00<") == 12  # three readings in each of four scenarios
    assert "Target speaker among the first: libri_test" in worst
    assert "50\N{NO-BREAK SPACE}%" in worst
    assert "0.75" in alike
    assert "\N{MINUS SIGN}3.25\N{NO-BREAK SPACE}dB" in alike
    assert "Voice similarity: libri_test" in alike
    assert 'href="data:image/png' in alike  # the colour bar
    bad = similarity(matrices={"oo": {"speakers": ["a", "b"], "values": [[7, 0], [0, 7]]}})
    assert "A plot is left out" in render_page(bare(results) | {"similarity": [bad]}, folder=".")


def test_the_first_screen_shows_the_interval_of_the_minimum(results: dict[str, Any]) -> None:
    place = {"dataset": "libri_test", "gender": "all", "scenario": "semi-informed"}
    stated = place | {"strongest": "gmm-svm", "eer": 0.02, "low": 0.011, "high": 0.031}
    stated |= {"minimum": {"low": 0.0125, "high": 0.0345}}
    page = render_page(bare(results) | {"summary": [stated]}, folder=".")
    assert "1.2\N{EN DASH}3.5\N{NO-BREAK SPACE}%" in page
    assert "1.1\N{EN DASH}3.1" not in page
    assert (
        "accounts for the choice of the strongest attacker and scenario on these same trials"
        in page
    )
    before = render_page(bare(results), folder=".")
    assert "which makes privacy seem worse rather than better" in before


def test_the_first_screen_is_short_and_the_rest_is_collapsed(
    results: dict[str, Any],
) -> None:
    """A manager reads a minute: the badge, one rate, who is found, what would help, and what speaks against it."""
    for one in bare(results)["conditions"]:
        one["speakers"] = [
            {"speaker": "anna", "first": 1, "others_first": 0.1, "n_target": 9, "n_nontarget": 99}
        ]
    checks = ("utility", "number of speakers", "overestimated privacy", "attacker strength")
    results["sanity"] = [
        {"level": "warning", "check": check, "text": "At length."} for check in checks
    ]
    results["attackers_run"] = {
        "explained": dict.fromkeys(("gmm-ubm", "gmm-svm"), "a machine, on `vectors`")
    }
    page = render_page(results, folder=".")
    head = page.partition("<body>")[2].partition("</header>")[0]
    text = " ".join(re.sub(r"<[^>]*>", " ", head).replace("&nbsp;", " ").split())
    places = [text.index(part) for part in (
        "Asked whether two anonymised recordings are of the same person, the strongest attacker makes hardly",
        "any errors on these trials (the interval allows 1 of",
        "(equal error rate) on libri_test",
        "1 of 1 speakers is found",
        "Strongest attacker: a machine.",
        "4 warnings about this result Attackers recognise even original speech poorly",
    )]  # fmt: skip
    assert places == sorted(places)
    # the warning about the number of speakers would contradict this
    assert "Enough speakers" not in text
    assert "At length" not in text
    assert "Nobody measured whether the words" in text
    assert len(text.split()) < 200
    sections = page.count("<section ")
    assert sections == page.count('<details class="part">') > 8
    assert " open" not in "".join(re.findall("<details[^>]*>", page))


def test_speaker_names_are_replaced_in_tables_texts_and_utterances(
    results: dict[str, Any], tmp_path: Path
) -> None:
    for one in bare(results)["conditions"]:
        one["speakers"] = [
            {"speaker": name, "linkability_mean": 0.5} for name in ("Zoë", "Anna Müller", "Anna")
        ]
        one["notes"] = {"linkability": "Zoë has one trial"}
    text = "Anna and Zoë-take_3.wav; Annabel is nobody; 'Carl-1' is broken; Dora-1 = Zoë-2."
    results["training_speakers"] = ["Anna", "Carl"]
    results["sanity"] = [{"level": "note", "check": "speaker overlap", "text": text}]
    results["tested_speakers"] = ["Anna", "Dora"]  # the latter is not enrolled
    entry = similarity(matrices={"oo": {"speakers": ["Anna", "Zoë"], "values": [[1, 0], [0, 1]]}})
    write_json(tmp_path / "results.json", results | {"similarity": [entry]})
    options = ["--pseudonyms", "--title", "For <us>"]
    done = CliRunner().invoke(main, ["page", str(tmp_path / "results.json"), *options])
    assert done.exit_code == 0, done.output
    page = (tmp_path / "report.html").read_text("utf-8")
    assert (
        "S01 and S03-take_3.wav; Annabel is nobody; &#39;S04-1&#39; is broken; S05-1 = S03-2."
        in page
    )
    assert not re.search(r"Zoë|Müller|Anna\b|Carl|Dora", page)
    assert {"S01", "S02", "S03"} <= set(re.findall(r"<th[^>]*>(S\d\d)", page))
    assert "Speakers' names are replaced by S01, S02, ... on this page." in page
    assert "<title>For &lt;us&gt;</title>" in page
    assert "mcadams</h1>" not in page


@pytest.mark.parametrize(
    ("ends", "said"),
    [
        ((0.02, 0.06, 0.01), "two protects more than one: 2.0 points [1.0, 6.0], p = 0.010"),
        ((-0.02, -0.001, 0.0001), "two protects less than one: \N{MINUS SIGN}2.0 points"),
        ((0.0, float("nan"), float("nan")), "two and one have equal rates: 0.0 points"),
        ((-0.0001, 0.02, 0.9), "No significant difference between one and two: 0.0 points"),
    ],
)
def test_a_comparison_begins_with_its_verdict(
    results: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
    ends: tuple[float, float, float],
    said: str,
) -> None:
    value, high, p_value = ends
    gap = Interval(value, 0.01, high, p_value=p_value)
    monkeypatch.setattr(
        comparison,
        "paired_rates",
        lambda *_: [comparison.PairedRates("two", "set", {"a": gap}, "")],
    )
    sources = [(bare(results) | {"anonymiser": {"name": name}}, ".") for name in ("one", "two")]
    text = read(render_comparison(sources, title="Which one?")).text
    assert "Which one? Voice privacy report Which one?" in text
    assert " ".join(
        said.replace("between one and two", "between two and one").split()
    ) in text.replace(" :", ":")
    assert "\N{MINUS SIGN}0.0" not in text
    assert "corrected by Holm's method, those of the strongest attackers for their number" in text


def test_a_forbidden_verdict_is_grey_on_both_pages() -> None:
    names = {"dataset": "d", "gender": "all", "scenario": "ignorant", "attacker": "a"}
    row = names | {"eer": {"rocch": 0.46}, "intervals": {"eer.rocch": {"low": 0.42, "high": 0.5}}}
    check = {"level": "error", "check": "pairs", "text": "Names are wrong."}
    results = {"format": 1, "conditions": [row], "sanity": [check], "anonymiser": {"name": "one"}}
    page = render_page(results, folder=".")
    for part in (
        page.partition("</header>")[0],
        page.partition('id="verdict"')[2].partition("</section>")[0],
    ):
        assert 'class="ruler level-none"' in part
        assert "ruler level-4" not in part
    other = results | {"sanity": [], "anonymiser": {"name": "two"}}
    head = render_comparison([(results, "."), (other, ".")]).partition("</header>")[0]
    assert (head.count("No verdict: it is not"), head.count("Strong protection")) == (1, 1)
    assert (head.count("ruler level-none"), head.count("ruler level-4")) == (1, 1)


def test_the_page_names_the_inverted_anonymiser(results: dict[str, Any]) -> None:
    undoing = {
        "background": "train_mcadams", "anonymizer": "mcadams", "parameter": "alpha", "known_by": "pairs",
        "recordings": 251, "speakers": 250, "cues": "both", "kernel": "Gaussian", "rmse": 0.0149, "spread": 0.1158,
    }  # fmt: skip
    page = render_page(bare(results) | {"undoing": [undoing]}, folder=".")
    section = page.partition('<section id="inversions"')[2]
    for text in ("train_mcadams", "mcadams (from pairs)", "0.0149", "0.1158"):
        assert text in section
    assert 'id="inversions"' not in render_page(bare(results), folder=".")
