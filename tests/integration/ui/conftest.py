"""A small cohort taken to an eligible release, the governance UI on top of it, and a browser to look at it."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import pytest
import yaml
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webdriver import WebDriver
from selenium.webdriver.support.ui import WebDriverWait

from resources.cohorts import CohortRegistry
from resources.home import SynthHome
from tests.parish import CENSUS, write_census

CHROMIUM, DRIVER = Path("/usr/bin/chromium"), Path("/usr/bin/chromedriver")
SYNTH = Path(sys.executable).with_name("synth")
BUNDLED = Path(__file__).resolve().parents[3] / "cohorts" / "virtual" / "cohort.yaml"
SWITCHES = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--window-size=1600,1200",
)
WAIT = 60


@dataclass(frozen=True)
class Page:
    """One open page of the UI."""

    driver: WebDriver
    url: str

    def open(self, path: str, *texts: str) -> str:
        """Open `path` and return its visible text once it holds all `texts`; TimeoutException names a missing one."""
        self.driver.get(self.url + path)
        for text in texts:
            WebDriverWait(self.driver, WAIT).until(
                lambda _, text=text: text in self.text, f"{path} never showed {text!r}; it shows:\n{self.text}"
            )
        self._keep(re.sub(r"\W+", "-", path).strip("-"))
        return self.text

    @property
    def text(self) -> str:
        """The visible text."""
        return self.driver.find_element(By.TAG_NAME, "body").text

    def _keep(self, name: str) -> None:
        if folder := os.environ.get("SYNTH_SCREENSHOTS"):
            Path(folder).mkdir(parents=True, exist_ok=True)
            self.driver.save_screenshot(str(Path(folder) / f"{name}.png"))


@pytest.fixture(scope="session")
def finished_home(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Environment of a home with a released DP table, a list, a census under both policies, and a refused control.

    A wide plan and wide gates, because noise is never the same twice and this is a test of what the pages show.
    """
    folder = tmp_path_factory.mktemp("ui")
    cohort = yaml.safe_load(BUNDLED.read_text(encoding="utf-8"))
    cohort["privacy"]["budget"]["epsilon"] = 20.0
    cohort["plans"] = {"wide": {"epsilon": 8.0, "delta": 1e-5}}
    cohort["gates"] |= {"train_closer_tolerance": 0.3, "membership_limit": 0.7, "membership_design": "direct"}
    cohort["gates"]["power_draws"] = 8
    (folder / "virtual").mkdir()
    (folder / "virtual" / "cohort.yaml").write_text(yaml.safe_dump(cohort), encoding="utf-8")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("SYNTH_", "DAGSTER_"))}
    environment |= {"SYNTH_HOME": str(folder / "home"), "OPENBLAS_NUM_THREADS": "1"}
    (folder / "home").mkdir()
    registry = CohortRegistry(path=str(SynthHome(folder / "home").cohorts))
    registry.add(folder / "virtual")
    registry.add(write_census(folder / CENSUS))
    for command in (
        ["run", "virtual", "--generator", "G0A", "--generator", "S_COPY"],
        ["discover", "virtual", "--contrast", "s1"],
        ["run", CENSUS],
    ):
        done = subprocess.run(
            [SYNTH, *command], check=False, env=environment, capture_output=True, text=True, timeout=300
        )
        assert done.returncode == 0, done.stdout + done.stderr
    return environment


@pytest.fixture(scope="session")
def governance_url(finished_home: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of `synth ui --read-only`; stopped afterwards, and it must leave nothing running."""
    log = tmp_path_factory.mktemp("log") / "ui.log"
    port = _free_port()
    with log.open("w") as stream:
        server = subprocess.Popen(
            [SYNTH, "ui", "--read-only", "--port", str(port)],
            env=finished_home,
            stdout=stream,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        url = f"http://127.0.0.1:{port}"
        _until(lambda: _answers(url) or server.poll() is not None, "the UI did not start", log)
        assert server.poll() is None, log.read_text()
        yield url
        server.send_signal(signal.SIGTERM)
        server.wait(WAIT)
        _until(lambda: not _group_lives(server.pid), "the UI left processes behind", log)
    finally:
        if _group_lives(server.pid):
            os.killpg(server.pid, signal.SIGKILL)
        server.wait(WAIT)


@pytest.fixture
def page(governance_url: str, tmp_path: Path) -> Iterator[Page]:
    """A fresh headless browser on the governance UI."""
    options = webdriver.ChromeOptions()
    options.binary_location = str(CHROMIUM)
    for switch in (*SWITCHES, f"--user-data-dir={tmp_path / 'profile'}"):
        options.add_argument(switch)
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(str(DRIVER)))
    try:
        yield Page(driver, governance_url)
    finally:
        driver.quit()
        shutil.rmtree(tmp_path / "profile", ignore_errors=True)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _answers(url: str) -> bool:
    try:
        with urlopen(f"{url}/server_info", timeout=5) as response:
            return bool(response.status == 200)
    except (URLError, TimeoutError, ConnectionError):
        return False


def _group_lives(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def _until(condition: Callable[[], bool], failure: str, log: Path) -> None:
    deadline = time.monotonic() + 2 * WAIT
    while not condition():
        assert time.monotonic() < deadline, f"{failure}:\n{log.read_text()}"
        time.sleep(0.2)
