#include <nlohmann/json.hpp>

#include "api/cli/commands/Commands.h"
#include "api/cli/remote/Remote.h"
#include "api/cli/remote/Tables.h"
#include "api/command/Options.h"
#include "base/Clock.h"
#include "base/http/Url.h"

namespace hearth::cli {
namespace {

/// Flags, and the fields of a quota that they set.
struct QuotaFlag {
    const char* flag;
    const char* field;
    const char* value;
    const char* help;
};
constexpr std::array<QuotaFlag, 6> kQuotaFlags{{
    {"workspaces", "workspaces", "N", "Workspaces open at once"},
    {"cpu", "cpu", "CORES", "Cores of its workspaces together: 8, 500m"},
    {"memory", "memory", "SIZE", "Memory of its workspaces together: 16Gi"},
    {"executions", "executions", "N", "Executions running at once"},
    {"claims-per-second", "claimsPerSecond", "RATE", "Claims a second: 10, 0.5"},
    {"claims-burst", "claimsBurst", "N", "Claims at once; two seconds' worth by default"},
}};

Json quotaOf(const Options& options) {
    Json quota = Json::object();
    for (const QuotaFlag& each : kQuotaFlags) {
        const auto given = options.get(each.flag);
        if (!given) continue;
        const bool size =
            each.flag == std::string_view("cpu") || each.flag == std::string_view("memory");
        const Json number = Json::parse(*given, nullptr, false);
        if (!size && !number.is_number()) {
            throw UsageError(std::string("--") + each.flag + " is \"" + *given + "\"",
                             "give a number");
        }
        quota[each.field] = size ? Json(*given) : number;
    }
    if (quota.empty()) {
        throw UsageError("no limit is given", "hearth quota set ci --workspaces 20 --memory 32Gi");
    }
    return quota;
}

int quota(const Invocation& call) {
    const Options& options = call.options;
    const std::string& verb = options.positional()[0];
    const std::string& tenant = options.positional()[1];
    if (verb != "set" && verb != "delete") {
        throw unknownWord("quota \"" + verb + "\" is unknown", verb, {"set", "delete"});
    }
    Remote remote(options);
    const std::string target = "/v1/quotas/" + percentEncode(tenant);
    if (verb == "delete") {
        remote.send("DELETE", target);
        call.console.out << "quota of tenant " << tenant << " deleted\n";
        return kOk;
    }
    const Json set = remote.send("PUT", target, quotaOf(options)).body;
    call.console.out << quotaTable({set}, SystemClock().wall());
    return kOk;
}

}  // namespace

Command makeQuota() {
    std::vector<Flag> flags;
    for (const QuotaFlag& each : kQuotaFlags) {
        flags.push_back(ownFlag(each.flag, 0, each.value, each.help));
    }
    return {{.name = "quota",
             .arguments = "set|delete TENANT",
             .summary = "Limit what a tenant may have at most.",
             .details =
                 "  hearth quota set ci --workspaces 20 --cpu 16 --memory 32Gi\n"
                 "  hearth quota set '*' --workspaces 5      # each tenant without its own\n"
                 "  hearth quota delete ci\n"
                 "  hearth get quotas\n\n"
                 "What is left out is not limited. Needs an admin's token. Quotas may also stand\n"
                 "in the server's configuration file, which is then the only place to change them.",
             .flags = withClientFlags(std::move(flags)),
             .least = 2,
             .most = 2,
             .operands = {"set|delete", ""}},
            quota};
}

}  // namespace hearth::cli
