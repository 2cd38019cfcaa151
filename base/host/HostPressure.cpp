#include "base/host/HostPressure.h"

#include <fstream>
#include <sstream>
#include <string_view>

namespace hearth {
namespace {

constexpr double kMicros = 1e6;

/// Returns a field of the first line, "some avg10=0.00 avg60=0.00 avg300=0.00 total=0".
std::optional<double> fieldOf(const std::string& path, std::string_view field) {
    std::ifstream file(path);
    std::string word;
    if (!(file >> word) || word != "some") return std::nullopt;
    while (file >> word && word != "full") {
        const std::size_t equals = word.find('=');
        if (equals == std::string::npos || word.compare(0, equals, field) != 0) continue;
        std::istringstream number(word.substr(equals + 1));
        double value = 0;
        return number >> value ? std::optional(value) : std::nullopt;
    }
    return std::nullopt;
}

std::optional<HostPressure> all(const std::string& folder, std::string_view field, double unit) {
    HostPressure out;
    for (const auto& [name, value] :
         {std::pair("/cpu", &out.cpu), {"/memory", &out.memory}, {"/io", &out.io}}) {
        const std::optional<double> found = fieldOf(folder + name, field);
        if (!found) return std::nullopt;
        *value = *found / unit;
    }
    return out;
}

}  // namespace

std::optional<HostPressure> hostPressure(const std::string& folder) {
    return all(folder, "avg10", 1);
}

std::optional<HostPressure> hostStalls(const std::string& folder) {
    return all(folder, "total", kMicros);
}

}  // namespace hearth
