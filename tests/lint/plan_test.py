"""The choices of tests/plan.py for names and for changed files, in this checkout."""

import io
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import plan  # noqa: E402

TABLE = plan.rooms()
KNOWN = plan.suites(TABLE)


def seen(*paths):
    return set(plan.by_change(paths, KNOWN, TABLE))


def stages(chosen):
    return sorted({stage for stage, _ in chosen})


class ByChange(unittest.TestCase):
    def test_pages_are_seen_by_lint_and_the_test_of_the_pages(self):
        self.assertLessEqual(seen("README.md", "docs/security.md", "pool/README.md"), {("lint", "lint"), ("server", "docs")})

    def test_a_room_is_seen_by_the_programs_that_are_made_of_it(self):
        chosen = seen("controller/claims/ClaimQueue.cpp")
        units = {suite for stage, suite in chosen if stage == "unit"}
        self.assertLessEqual({"controller", "rest", "mcp", "cli"}, units)
        self.assertFalse({"base", "agent", "sandbox", "runtime", "egress"} & units)

    def test_the_servers_own_rooms_are_seen_by_every_server_suite(self):
        for path in ("controller/claims/ClaimQueue.cpp", "api/http/front/Front.h", "pool/agent/program/main.cpp", "base/Error.h"):
            servers = {suite for stage, suite in seen(path) if stage == "server"}
            self.assertEqual(servers, {each.name for each in KNOWN if each.stage == "server"}, path)
            self.assertIn("crash", stages(seen(path)))

    def test_a_room_of_the_table_is_seen_by_the_suites_of_its_longest_line(self):
        servers = {suite for stage, suite in seen("api/cli/doctor/Doctor.cpp") if stage == "server"}
        self.assertEqual(servers, {"docker", "start"})
        self.assertNotIn("crash", stages(seen("api/cli/doctor/Doctor.cpp")))

    def test_what_the_agent_stands_on_is_seen_by_its_tests(self):
        self.assertIn(("unit", "agent"), seen("pool/tar/TarReader.h"))
        self.assertIn(("kernel", "kernel"), seen("pool/tar/TarReader.h"))
        self.assertIn(("unit", "agent"), seen("pool/agent/drivers/python/driver.py"))

    def test_a_test_is_seen_by_itself(self):
        self.assertEqual(seen("tests/unit/controller/egress/Outside.h"), {("lint", "lint"), ("unit", "egress")})
        self.assertEqual(seen("tests/server/rest_test.py"), {("lint", "lint"), ("server", "rest")})
        self.assertEqual(seen("tests/crash/run"), {("lint", "lint"), ("crash", "crash")})
        self.assertEqual(seen("tests/cluster/node.py"), {("lint", "lint"), ("cluster", "cluster")})

    def test_what_tests_stand_on_is_seen_by_those_tests(self):
        self.assertEqual(seen("tests/server/registry.py"), {("lint", "lint"), ("server", "ondemand")})
        self.assertIn(("unit", "controller"), seen("tests/support/Support.h"))

    def test_an_unknown_file_is_seen_by_everything(self):
        self.assertEqual(stages(seen("CMakeLists.txt")), sorted(plan.DEFAULT))
        self.assertEqual(stages(seen("nobody/knows.this")), sorted(plan.DEFAULT))

    def test_the_table_names_rooms_and_suites_that_there_are(self):
        names = {each.name for each in KNOWN} | {"docs"}
        for room, suites in plan.SEEN_BY.items():
            self.assertTrue(any(plan.under(each, room) for each in TABLE), room)
            self.assertLessEqual(set(suites.split()), names, room)
        self.assertLessEqual(set(plan.SANITIZED), names)
        self.assertLessEqual(set(plan.SERVER + plan.KERNEL), set(TABLE))

    def test_every_unit_test_belongs_to_one_program(self):
        held = [path for each in KNOWN if each.stage == "unit" for path in each.sources() if path.endswith("Test.cpp")]
        self.assertEqual(sorted(held), plan.files("tests/unit/**/*Test.cpp"))


class ByName(unittest.TestCase):
    def test_a_suite_goes_before_cases_that_hold_its_name(self):
        self.assertEqual(plan.by_name(["rest_contract_test.py"], KNOWN, plan.DEFAULT), {("server", "rest_contract"): []})
        self.assertEqual(plan.by_name(["unit_http"], KNOWN, plan.DEFAULT), {("unit", "http"): []})
        self.assertEqual(plan.by_name(["server/egress"], KNOWN, plan.DEFAULT), {("server", "egress"): []})

    def test_a_part_of_a_name_is_all_cases_that_have_it(self):
        chosen = plan.by_name(["greedy_ten"], KNOWN, plan.DEFAULT)
        self.assertEqual(chosen, {("security", "security"): ["greedy_tenant"]})
        self.assertRaises(SystemExit, plan.by_name, ["no case is called so"], KNOWN, plan.DEFAULT)

    def test_a_stage_of_another_preset_has_some_suites(self):
        self.assertEqual([suite for _, suite in plan.by_name(["unit-tsan"], KNOWN, plan.DEFAULT)], plan.SANITIZED)
        self.assertEqual([suite for _, suite in plan.by_name(["server-release"], KNOWN, plan.DEFAULT)], plan.RELEASED)
        self.assertNotIn(("server-asan", "polyglot"), plan.by_name(["server-asan"], KNOWN, plan.DEFAULT))


if __name__ == "__main__":
    said = io.StringIO()
    if not unittest.TextTestRunner(said).run(unittest.defaultTestLoader.loadTestsFromName("__main__")).wasSuccessful():
        sys.exit(said.getvalue())
