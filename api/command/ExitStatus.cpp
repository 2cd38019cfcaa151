#include "api/command/ExitStatus.h"

#include <array>
#include <vector>

namespace hearth::cli {
namespace {

constexpr std::size_t kWidth = 80;

struct Meaning {
    int status;
    const char* text;
};

constexpr std::array<Meaning, 8> kMeanings = {{
    {kOk, "ok"},
    {kFailure, "failure"},
    {kUsage, "wrong usage"},
    {kNotFound, "not found"},
    {kUnreachable, "server unreachable"},
    {kIncomplete, "output was lost"},
    {kTimedOut, "timed out"},
    {kInterrupted, "interrupted"},
}};

}  // namespace

std::string exitStatusText() {
    std::vector<std::string> parts{"exit status:"};
    for (const Meaning& meaning : kMeanings) {
        parts.push_back(std::to_string(meaning.status) + " " + meaning.text + ",");
    }
    parts.emplace_back("else the program's own, 128 + N if signal N ended it");
    std::string text;
    std::size_t used = 0;
    for (const std::string& part : parts) {
        const bool fits = used == 0 || used + 1 + part.size() <= kWidth;
        if (used > 0) text += fits ? " " : "\n";
        used = fits && used > 0 ? used + 1 + part.size() : part.size();
        text += part;
    }
    return text;
}

}  // namespace hearth::cli
