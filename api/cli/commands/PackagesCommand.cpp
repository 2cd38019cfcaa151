#include <nlohmann/json.hpp>

#include "api/cli/commands/Commands.h"
#include "api/cli/remote/References.h"
#include "api/cli/remote/Remote.h"
#include "api/cli/remote/Tables.h"
#include "api/command/OutputFormat.h"
#include "base/Error.h"
#include "base/http/Url.h"

namespace hearth::cli {
namespace {

constexpr int kWaitSeconds = 30;

Json packagesRequestOf(const Options& options) {
    const std::vector<std::string>& words = options.positional();
    const std::string& verb = words[0];
    const std::vector<std::string> names(words.begin() + 2, words.end());
    const auto from = options.get("from");
    if (verb != "install" && verb != "check" && verb != "list") {
        throw unknownWord("packages \"" + verb + "\" is unknown", verb,
                          {"install", "check", "list"});
    }
    if (from && verb != "install") throw UsageError("--from is for install", "leave it out");
    if (verb == "list" ? !names.empty() : names.empty() == !from) {
        throw UsageError(verb == "list" ? "list takes no names" : "which packages?",
                         "hearth packages install WORKSPACE numpy==2.1, or --from FILE");
    }
    Json body{{"manager", options.get("manager", "auto")}, {"waitSeconds", kWaitSeconds}};
    if (from) body["from"] = *from;
    if (verb == "list") {
        body["list"] = true;
    } else if (!names.empty()) {
        body[verb] = names;
    }
    return body;
}

int packages(const Invocation& call) {
    const Options& options = call.options;
    const Json body = packagesRequestOf(options);
    const bool json = wantsJson(options);
    Remote remote(options);
    Json view =
        remote
            .send("POST",
                  "/v1/workspaces/" + percentEncode(workspaceId(remote, options.positional()[1])) +
                      "/packages",
                  body)
            .body;
    const std::string execution = view.value("executionId", "");
    if (view.value("status", "") == "running") {
        call.console.note("still running as " + execution +
                          "; its output is in: hearth get execution " + execution);
    }
    if (json) {
        call.console.out << jsonText(view) << '\n';
    } else {
        call.console.out << packageTable(view["packages"]);
        const Json& error = view["error"];
        if (error.is_string()) call.console.note(error.get<std::string>());
    }
    return view.value("status", "") == "failed" ? kFailure : kOk;
}

}  // namespace

Command makePackages() {
    return {{.name = "packages",
             .arguments = "install|check|list WORKSPACE [NAME...]",
             .summary = "Install packages in a workspace, or show what is installed.",
             .details =
                 "  hearth packages install ws_4f0c… numpy==2.1 pandas\n"
                 "  hearth packages install ws_4f0c… --from requirements.txt\n"
                 "  hearth packages check ws_4f0c… numpy\n"
                 "  hearth packages list ws_4f0c…\n\n"
                 "Runs pip or npm in the workspace, through the index that the operator mirrors:\n"
                 "install needs a workspace whose network is Mirror or Egress. Names are those of\n"
                 "an index, with versions or without: numpy==2.1, @scope/name@^1.",
             .flags = withClientFlags(
                 withOutputFlags({Flag{.name = "manager",
                                       .value = "NAME",
                                       .help = "auto, pip or npm",
                                       .fallback = "auto",
                                       .environment = false},
                                  Flag{.name = "from",
                                       .value = "FILE",
                                       .help = "A file of the workspace that names them: "
                                               "requirements.txt, pyproject.toml, package.json",
                                       .environment = false}},
                                 true)),
             .least = 2,
             .most = 66,
             .operands = {"install|check|list", "@workspace", ""}},
            packages};
}

}  // namespace hearth::cli
