#include <nlohmann/json.hpp>

#include "api/cli/commands/Commands.h"
#include "api/cli/remote/Remote.h"
#include "api/cli/remote/Tables.h"
#include "base/http/Url.h"

namespace hearth::cli {
namespace {

/// `value` in the field's type: whole numbers are numbers, cpu and memory are texts.
Json quotaValue(const std::string& field, const std::string& value) {
    const bool digits = !value.empty() && value.size() < 10 &&
                        value.find_first_not_of("0123456789") == std::string::npos;
    if (digits && field != "cpu" && field != "memory") return std::stoul(value);
    return value;
}

int quotaSet(const Invocation& call) {
    const std::vector<std::string>& words = call.options.positional();
    Remote remote(call.options);
    const std::string target = "/v1/quotas/" + percentEncode(words[1]);
    const Json before = remote.get(target);
    const std::string source = textAt(before, "source");
    Json quota = source == "store" ? before.at("quota") : Json::object();
    for (std::size_t i = 2; i < words.size(); ++i) {
        const std::size_t equals = words[i].find('=');
        if (equals == std::string::npos || equals == 0) {
            throw UsageError("\"" + words[i] + "\" sets nothing",
                             "write FIELD=VALUE, as workspaces=10; FIELD= removes a limit");
        }
        const std::string field = words[i].substr(0, equals);
        const std::string value = words[i].substr(equals + 1);
        const bool floor = field.starts_with("guaranteed.");
        if (floor && !quota.contains("guaranteed")) quota["guaranteed"] = Json::object();
        Json& where = floor ? quota["guaranteed"] : quota;
        const std::string key = floor ? field.substr(11) : field;
        if (value.empty()) {
            where.erase(key);
        } else {
            where[key] = quotaValue(field, value);
        }
    }
    const Answer answer = remote.send("PUT", target, quota);
    call.console.out << "quota " << printable(words[1]) << " set\n" << fieldList(answer.body);
    return kOk;
}

int quota(const Invocation& call) {
    const std::vector<std::string>& words = call.options.positional();
    const std::string& verb = words[0];
    if (verb == "show" && words.size() <= 2) {
        Remote remote(call.options);
        call.console.out << fieldList(
            remote.get(words.size() == 1 ? "/v1/quota" : "/v1/quotas/" + percentEncode(words[1])));
        return kOk;
    }
    if (verb == "set" && words.size() >= 3) return quotaSet(call);
    if (verb == "remove" && words.size() == 2) {
        Remote remote(call.options);
        remote.send("DELETE", "/v1/quotas/" + percentEncode(words[1]));
        call.console.out << "quota " << printable(words[1]) << " removed\n";
        return kOk;
    }
    if (verb != "show" && verb != "set" && verb != "remove") {
        throw unknownWord("quota \"" + verb + "\" is unknown", verb, {"show", "set", "remove"});
    }
    throw UsageError("quota " + verb + " has other arguments",
                     "hearth quota show [TENANT] | set TENANT FIELD=VALUE… | remove TENANT");
}

}  // namespace

Command makeQuota() {
    return {{.name = "quota",
             .arguments = "show|set|remove [TENANT] [FIELD=VALUE…]",
             .summary = "Show or change what a tenant may hold.",
             .details =
                 "  hearth quota show                              your own\n"
                 "  hearth quota set shop workspaces=10 cpu=8 memory=16Gi\n"
                 "  hearth quota set shop claimsPerSecond=5 weight=2 guaranteed.python=3\n"
                 "  hearth quota set '*' workspaces=4              of tenants without their own\n"
                 "  hearth quota set shop cpu=                     removes one limit\n"
                 "  hearth quota remove shop\n\n"
                 "Fields: workspaces, cpu, memory, gpus, executions, claimsPerSecond, claimBurst,\n"
                 "weight, guaranteed.POOL. `hearth get quotas` lists all.",
             .flags = clientFlags(),
             .least = 1,
             .most = 30,
             .operands = {"show|set|remove", ""}},
            quota};
}

}  // namespace hearth::cli
