#include <nlohmann/json.hpp>

#include "api/cli/commands/Commands.h"
#include "api/cli/remote/ExecutionFollower.h"
#include "api/cli/remote/References.h"
#include "api/cli/remote/Remote.h"
#include "api/cli/remote/RunOutput.h"
#include "api/cli/remote/Tables.h"
#include "api/command/OutputFormat.h"
#include "base/Error.h"
#include "base/http/Url.h"

namespace hearth::cli {
namespace {

constexpr int kWaitSeconds = 30;  // of one answer; longer work is followed

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

/// Follows work that the server's answer did not wait for. Returns the last answer.
Json lastAnswer(const Invocation& call, Remote& remote, const std::string& target, const Json& body,
                Json view) {
    if (view.value("status", "") != "running") return view;
    const std::string execution = view.value("executionId", "");
    call.console.note("still running, as " + execution);
    RunOutput output(call.console, true);
    ExecutionFollower(remote, output, {}).follow(execution);
    if (exitStatusOf(output.result()) != kOk) {
        view["status"] = "failed";
        view["error"] = textAt(output.result(), "stderr");
        return view;
    }
    Json check{{"manager", body["manager"]}, {"waitSeconds", kWaitSeconds}};
    if (body.contains("install")) {
        check["check"] = body["install"];
    } else {
        check["list"] = true;
    }
    return remote.send("POST", target, check).body;
}

int packages(const Invocation& call) {
    const Options& options = call.options;
    const Json body = packagesRequestOf(options);
    const bool json = wantsJson(options);
    Remote remote(options);
    const std::string target = "/v1/workspaces/" +
                               percentEncode(workspaceId(remote, options.positional()[1])) +
                               "/packages";
    const Json view =
        lastAnswer(call, remote, target, body, remote.send("POST", target, body).body);
    if (json) {
        call.console.out << jsonText(view) << '\n';
    } else {
        call.console.out << packageTable(view.at("packages"));
        if (const std::string error = textAt(view, "error"); !error.empty()) {
            call.console.note(error);
        }
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
                 "an index, with versions or without: numpy==2.1, @scope/name@^1. Names are\n"
                 "pip's; npm's need --manager npm. Returns when all is installed.",
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
