#include "controller/simulation/Chart.h"

#include <algorithm>
#include <iomanip>
#include <sstream>

namespace hearth::controller {
namespace {

constexpr int kRow = 64;
constexpr int kTop = 40;
constexpr int kLeft = 120;
constexpr int kBars = 460;
constexpr int kWidth = 780;

std::string escaped(const std::string& text) {
    std::string out;
    for (const char c : text) {
        if (c == '<') {
            out += "&lt;";
        } else if (c == '&') {
            out += "&amp;";
        } else {
            out += static_cast<unsigned char>(c) < ' ' ? '?' : c;
        }
    }
    return out;
}

}  // namespace

std::string chartOf(const std::vector<Comparison>& rows) {
    std::ostringstream out;
    out << std::fixed << std::setprecision(2);
    const auto height = kTop + kRow * static_cast<int>(rows.size()) + 10;
    out << R"(<svg xmlns="http://www.w3.org/2000/svg" width=")" << kWidth << R"(" height=")"
        << height << R"(" font-family="sans-serif" font-size="12">)"
        << "\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n"
        << R"(<text x="10" y="22" font-size="15">Idle sandbox-seconds for each claim</text>)"
        << '\n';
    int y = kTop;
    for (const Comparison& row : rows) {
        const double most = std::max({row.best_static.idle_seconds, row.predictive.idle_seconds,
                                      row.clairvoyant.idle_seconds, 1e-9});
        const auto bar = [&](int line, const std::string& name, const PolicyResult& of,
                             const char* colour) {
            const int at = y + 17 * line;
            out << "<rect x=\"" << kLeft << "\" y=\"" << at << "\" width=\""
                << kBars * of.idle_seconds / most << "\" height=\"14\" fill=\"" << colour
                << "\"/><text x=\"" << kLeft + kBars * of.idle_seconds / most + 6 << "\" y=\""
                << at + 11 << "\">" << name << ' '
                << of.idle_seconds / static_cast<double>(std::max<std::uint64_t>(1, of.claims))
                << "</text>\n";
        };
        out << "<text x=\"10\" y=\"" << y + 28 << "\">" << escaped(row.trace) << "</text>\n";
        bar(0, "Static " + std::to_string(row.static_size), row.best_static, "#9aa4b2");
        bar(1, "Predictive", row.predictive, "#2b6cb0");
        bar(2, "Clairvoyant", row.clairvoyant, "#2f855a");
        y += kRow;
    }
    out << "</svg>\n";
    return out.str();
}

}  // namespace hearth::controller
