#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "controller/services/PackageService.h"
#include "tests/support/FakeExecution.h"

using namespace hearth;
using namespace hearth::controller;

namespace {

PackagesView viewOf(const std::string& outcome, const std::vector<std::string>& names) {
    hearth::test::FakeExecution execution;
    execution.state.status = ExecutionStatus::Failed;
    execution.state.stdout_bytes = outcome;
    return PackageService::viewOf(execution, names);
}

}  // namespace

TEST_CASE("the error of an installation is listed with each package", "[unit][controller]") {
    const PackagesView view = viewOf("{\"error\": \"no index\"}\n", {"foo", "bar"});
    CHECK(view.status == PackagesStatus::Failed);
    CHECK(view.error == "no index");
    CHECK(view.packages.at("foo").error == "no index");
    CHECK(view.packages.at("bar").error == "no index");
}

TEST_CASE("a long text in an outcome, which a tenant may have written, is cut",
          "[unit][controller]") {
    const std::string text(100'000, 'x');
    const PackagesView whole = viewOf("{\"error\": \"" + text + "\"}", {"foo"});
    CHECK(whole.error.size() < 3'000);
    CHECK(whole.packages.at("foo").error.size() < 3'000);
    const PackagesView each =
        viewOf("{\"packages\": {\"foo\": {\"state\": \"failed\", \"error\": \"" + text +
                   "\", \"version\": \"" + text + "\"}}}",
               {"foo"});
    CHECK(each.packages.at("foo").error.size() < 3'000);
    CHECK(each.packages.at("foo").version.size() < 3'000);
}
