#include "api/serve/Greeting.h"

#include <cstdlib>
#include <sstream>

#include "api/serve/process/ProgramPath.h"
#include "base/Version.h"

namespace hearth::program {

std::string Greeting::text() const {
    const std::string program = cli::programWord(cli::programPath(), std::getenv("PATH"));
    const std::string there = url == "http://127.0.0.1:8080" ? "" : " --url " + url;
    std::ostringstream words;
    words << "Hearth " << kHearthVersion << " serves\n"
          << "  REST        " << url << "/v1      (docs: " << url << "/docs)\n"
          << "  MCP         " << url
          << (seed.empty()
                  ? "/mcp     (" + program + " mcp-config claude-code" + there + ")"
                  : "/hearth/mcp; the tools of " + seed + ": " + url + "/mcp, " + url + "/sse")
          << "\n"
          << "  operations  http://" << operations << "/metrics /healthz /readyz\n"
          << firstStep(program, there) << "    Stop: Ctrl-C\n";
    return words.str();
}

std::string Greeting::firstStep(const std::string& program, const std::string& there) const {
    if (access == Access::Nobody) {
        return "It had tokens and has none now, so it serves nobody. Do: " +
               std::string(kOpenAgain);
    }
    const std::string with = access == Access::WithToken ? ", with HEARTH_TOKEN set: " : ": ";
    if (!missing_pool.empty()) {
        return "The default pool " + missing_pool + " is not declared. Declare it" + with +
               program + " apply" + there + " -f FILE";
    }
    if (!any_pool) {
        return "No pool is declared. Declare one" + with + program + " apply" + there +
               " -f FILE (sandbox_images/python/pool.yaml is one)";
    }
    return "Try" + with + program + " run" + there + " -l python -c 'print(1)'";
}

}  // namespace hearth::program
