"""The list of what is linked into the library, against Cargo's files and the library itself."""

import json
import pathlib
import re
import subprocess
import sys
import tomllib
from importlib.metadata import distribution

import rukh

ROOT = pathlib.Path(__file__).resolve().parents[2]


def written() -> dict:
    script = ROOT / "scripts" / "sbom.py"
    return json.loads(subprocess.run([sys.executable, script], check=True, stdout=subprocess.PIPE).stdout)


def test_it_lists_what_is_linked():
    document = written()
    assert document["metadata"]["component"]["name"] == "rukh"
    listed = {(component["name"], component["version"]) for component in document["components"]}
    names = {name for name, _ in listed}
    manifest = tomllib.loads((ROOT / "Cargo.toml").read_text())
    assert names.issuperset(manifest["dependencies"])
    # What only builds or tests is not linked, nor what the command needs.
    elsewhere = {*manifest["build-dependencies"], *manifest["dev-dependencies"], "clap", "prost-derive"}
    assert not names & (elsewhere - set(manifest["dependencies"]))
    # The library itself names the files of packages, for its panics.
    library = pathlib.Path(rukh.__file__).with_name("librukh.so").read_bytes()
    found = re.findall(rb"/registry/src/[^/\0]+/([A-Za-z0-9_-]+?)-(\d+\.\d+\.\d+[^/\0]*)/", library)
    assert found
    assert listed.issuperset((name.decode(), version.decode()) for name, version in found)


def test_each_component_is_that_of_the_lock_file():
    lock = tomllib.loads((ROOT / "Cargo.lock").read_text())
    checksums = {(p["name"], p["version"]): p.get("checksum") for p in lock["package"]}
    for component in written()["components"]:
        checksum = checksums[component["name"], component["version"]]
        # The workspace's own crates come from no registry.
        own = component["name"].startswith("rukh-")
        assert own == (checksum is None), component["name"]
        hashes = [] if own else [{"alg": "SHA-256", "content": checksum}]
        assert component.get("hashes", []) == hashes, component["name"]
        assert component["licenses"][0]["expression"], component["name"]


def test_dependencies_are_components():
    document = written()
    known = {component["bom-ref"] for component in document["components"]}
    known.add(document["metadata"]["component"]["bom-ref"])
    for row in document["dependencies"]:
        assert row["ref"] in known and known.issuperset(row["dependsOn"]), row["ref"]
    assert {row["ref"] for row in document["dependencies"]} == known


def test_the_wheel_has_it():
    document = distribution("rukh").read_text("sboms/rukh.cdx.json")
    assert json.loads(document)["components"] == written()["components"]
