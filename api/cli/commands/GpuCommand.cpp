#include <nlohmann/json.hpp>

#include "api/cli/commands/Commands.h"
#include "api/cli/remote/Remote.h"
#include "api/cli/remote/Tables.h"
#include "base/http/Url.h"

namespace hearth::cli {
namespace {

int gpu(const Invocation& call) {
    const std::vector<std::string>& words = call.options.positional();
    if (words[0] != "scrub") {
        throw unknownWord("gpu \"" + words[0] + "\" is unknown", words[0], {"scrub"});
    }
    Remote remote(call.options);
    const Answer answer = remote.send("POST", "/v1/gpus/" + percentEncode(words[1]) + "/scrub");
    call.console.out << fieldList(answer.body);
    return kOk;
}

}  // namespace

Command makeGpu() {
    return {{.name = "gpu",
             .arguments = "scrub UUID",
             .summary = "Scrub a condemned GPU again.",
             .details =
                 "  hearth gpu scrub GPU-0f3c2a9e-1111-2222-3333-444455556666\n\n"
                 "A GPU whose memory could not be overwritten after its last user is condemned:\n"
                 "nobody gets it. When its cause is gone, this scrubs it again, and if that\n"
                 "succeeds it is given out. `hearth get gpus` lists all with their reasons.",
             .flags = clientFlags(),
             .least = 2,
             .most = 2,
             .operands = {"scrub", ""}},
            gpu};
}

}  // namespace hearth::cli
