#!/usr/bin/env python3
"""Runs Catch2 programs and counts their test cases.

    catch_results.py STAGE PROGRAM [ARGUMENT...]
    catch_results.py STAGE --ctest BUILD_FOLDER LABEL [SUITE...]

SUITE is a program without LABEL_ before its name; some of its cases may follow, with tabs between.

Appends "pass|fail|skip STAGE NAME" for each test case to the file in HEARTH_TEST_RESULTS. A test
says that this machine lacks what it needs with a line "SKIP why" on its standard output. As many
programs run at a time as there are processors. A case that fails may be run again, once and alone
(second_try.py).
"""

import concurrent.futures
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as xml

import plan
import reasons
import second_try

DEFAULT_TIMEOUT = 900
MOST_LINES = 200  # of the output of a program that dies; a sanitizer's report begins some 150 before its end
SUFFIX = os.environ.get("HEARTH_TEST_SUFFIX", "")  # of each name: what a program that runs twice ran on


def only(cases, tag=""):
    """The argument by which Catch runs the cases with exactly these names and this tag."""
    quoted = ['"' + re.sub(r'([\\,\[\]"])', r"\\\1", case) + '"' for case in cases]
    return ",".join(case + tag for case in quoted) or tag


def programs_of_ctest(folder, label, suites):
    """(command, timeout) of each test that ctest knows under the label, or of those named."""
    wanted = {suite.split("\t")[0]: suite.split("\t")[1:] for suite in suites}
    told = subprocess.run(
        ["ctest", "--show-only=json-v1", "-L", f"^{label}$"],
        cwd=folder, capture_output=True, text=True, check=True)
    for test in json.loads(told.stdout)["tests"]:
        properties = {entry["name"]: entry["value"] for entry in test.get("properties", [])}
        command = test.get("command") or [test["name"]]
        suite = test["name"].removeprefix(f"{label}_")
        if wanted and suite not in wanted:
            continue
        if wanted.get(suite):
            command = [*command, only(wanted[suite])]
        yield command, float(properties.get("TIMEOUT", DEFAULT_TIMEOUT))


def cases_of(report):
    """(result, name, message) of each test case in a JUnit report."""
    for case in xml.parse(report).getroot().iter("testcase"):
        bad = [child for child in case if child.tag in ("failure", "error")]
        text = "\n".join((child.get("message") or "") + (child.text or "") for child in bad)
        yield ("fail" if bad else "pass"), case.get("name"), text


def run(command, timeout):
    """Results of one program: test cases, and one more where the program itself fails."""
    name = os.path.basename(command[0])
    if not os.path.exists(command[0]):
        return [("fail", name, "was not built")]
    with tempfile.TemporaryDirectory() as folder:
        report = os.path.join(folder, "report.xml")
        output = os.path.join(folder, "output")
        with open(output, "wb") as file:
            try:
                done = subprocess.run(
                    command + ["--reporter", "junit", "--out", report],
                    stdout=file, stderr=subprocess.STDOUT, timeout=timeout)
                ending = f"ended with status {done.returncode}"
                status = done.returncode
            except subprocess.TimeoutExpired:
                ending = f"was still running after {timeout:.0f} s"
                status = -1
        with open(output, encoding="utf-8", errors="replace") as file:
            lines = file.read().splitlines()
        try:
            results = list(cases_of(report))
            lines += [line for suite in xml.parse(report).getroot().iter("system-out")
                      for line in (suite.text or "").splitlines()]
        except (OSError, xml.ParseError):
            results = []
        if status != 0 and not any(result == "fail" for result, _, _ in results):
            results.append(("fail", name, "\n".join([ending] + lines[-MOST_LINES:])))
        if status == 0 and not results:
            results.append(("fail", name, "ran no test"))
        skips = [line.strip()[5:] for line in lines if line.strip().startswith("SKIP ")]
        return results + [("skip", why, "") for why in skips]


def timed(program):
    """Its results, and how many seconds they took."""
    began = time.monotonic()
    return run(*program), time.monotonic() - began


def run_again(stage, command, timeout, results):
    """The same results, but for cases that fail and then pass alone: those pass, and are reported."""
    program = command[0]
    again = []
    for result, name, text in results:
        alone = result == "fail" and name != os.path.basename(program) and second_try.allowed(stage)
        if alone and all(kind == "pass" for kind, _, _ in run([program, only([name])], timeout)):
            print(f"\nFAILED, THEN PASSED ALONE: {name}\n{text}\n", flush=True)
            second_try.report(stage, " ".join(name.split()) + SUFFIX)
            reasons.tell(stage, " ".join(name.split()) + SUFFIX, reasons.of_output(text))
            result = "pass"
        again.append((result, name, text))
    return again


def main():
    stage, arguments = sys.argv[1], sys.argv[2:]
    if arguments[0] == "--ctest":
        programs = list(programs_of_ctest(arguments[1], arguments[2], arguments[3:]))
    else:
        programs = [(arguments, DEFAULT_TIMEOUT)]
    lines = []
    if not programs:
        lines.append(f"fail {stage} there is no test program\n")
    first = []
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as lanes:
        for (command, _), (results, seconds) in zip(programs, lanes.map(timed, programs)):
            first.append(results)
            suite = os.path.basename(command[0]).removeprefix("unit_").removesuffix("_tests") + SUFFIX.strip().replace(" ", "")
            plan.note_time(stage, suite, seconds, [each for each in command[1:] if each.startswith('"')])
            count = {kind: sum(1 for result, _, _ in results if result == kind)
                     for kind in ("pass", "fail", "skip")}
            print(f"    {os.path.basename(command[0]):24} {count['pass']:5} passed {count['fail']:3} failed "
                  f"{count['skip']:3} skipped  {seconds:6.1f} s", flush=True)
    for (command, timeout), before in zip(programs, first):
        for result, name, text in run_again(stage, command, timeout, before):
            name = " ".join(name.split()) + SUFFIX
            lines.append(f"{result} {stage} {name}\n")
            if result == "fail":
                print(f"\nFAILED: {name}\n{text}\n", flush=True)
                reasons.tell(stage, name, reasons.of_output(text))
            elif result == "skip":
                print(f"    skipped: {name}", flush=True)
    if "HEARTH_TEST_RESULTS" in os.environ:
        with open(os.environ["HEARTH_TEST_RESULTS"], "a", encoding="utf-8") as file:
            file.writelines(lines)
    sys.exit(any(line.startswith("fail") for line in lines))


if __name__ == "__main__":
    main()
