#include "tests/bench/program/BenchChart.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/Error.h"

namespace hearth::cli {
namespace {

// Sizes in the picture's own pixels. A viewer scales it.
constexpr double kWidth = 860;
constexpr double kLeft = 212;   // names end here, bars begin
constexpr double kRight = 708;  // bars end here, ratios follow
constexpr double kTop = 92;
constexpr double kBar = 12;
constexpr double kRowPair = 42;
constexpr double kRowSingle = 28;
constexpr double kFoot = 70;

constexpr const char* kStyle = R"(<style>
text{font-family:system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif;fill:#1f2328}
.page{fill:#ffffff}.grid{stroke:#d1d9e0;stroke-width:1}.dim{fill:#59636e}
.hearth{fill:#d9480f}.docker{fill:#6b8cae}.tail{stroke:#1f2328;stroke-width:1.2;opacity:.55}
.ratio{font-weight:700}
@media (prefers-color-scheme:dark){text{fill:#e6edf3}.page{fill:#0d1117}.grid{stroke:#30363d}.dim{fill:#9198a1}
.hearth{fill:#ff8c42}.docker{fill:#7d9cbf}.tail{stroke:#e6edf3}}
</style>
)";

std::string escaped(const std::string& text) {
    static const std::map<char, std::string> kNames = {
        {'<', "&lt;"}, {'>', "&gt;"}, {'&', "&amp;"}, {'"', "&quot;"}};
    std::string out;
    for (const char c : toUtf8(text)) {
        const auto it = kNames.find(c);
        if (it != kNames.end()) {
            out += it->second;
        } else {
            out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;  // XML has no control characters
        }
    }
    return out;
}

/// Returns "0.61 ms", with as many digits as a reader needs.
std::string milliseconds(double value) {
    const int digits = value < 1 ? 2 : value < 10 ? 1 : 0;
    return number(value, digits) + " ms";
}

std::string ratioText(double ratio) {
    return number(ratio, ratio < 10 ? 1 : 0) + "×";
}

/// Returns a title of a series for readers who have not read the manual.
std::string titleOf(const std::string& series) {
    static const std::map<std::string, std::string> kTitles = {
        {"no-op", "a request for nothing"},
        {"claim", "claim a warm workspace"},
        {"close", "release it"},
        {"one shot", "one shot: claim, run, release"},
        {"shell", "shell command"},
        {"shell parked", "… in a parked shell"},
        {"python", "Python, fresh interpreter"},
        {"numpy", "… that has imported numpy"},
        {"context", "Python, kept context"},
        {"python cold", "Python, started cold"},
        {"write 1 KiB", "write a file of 1 KiB"},
        {"read 1 KiB", "read a file of 1 KiB"},
        {"write 1 MiB", "write a file of 1 MiB"},
        {"read 1 MiB", "read a file of 1 MiB"}};
    const auto it = kTitles.find(series);
    return it == kTitles.end() ? series : it->second;
}

/// Returns Docker's counterpart of a series.
std::string dockerTitleOf(const std::string& series) {
    if (series == "no-op") return "docker _ping";
    if (series == "claim") return "docker create + start";
    if (series == "close") return "docker rm";
    if (series == "one shot") return "docker run --rm";
    if (series.starts_with("write") || series.starts_with("read")) return "docker cp";
    return "docker exec";
}

/// A logarithmic axis of whole decades, in milliseconds.
class Axis {
public:
    explicit Axis(const std::vector<BenchReport::Row>& rows) {
        double least = 1e9;
        double most = 0;
        for (const BenchReport::Row& row : rows) {
            for (const auto* values : {&row.hearth, &row.docker}) {
                const Summary s = summarize(*values);
                if (s.samples == 0) continue;
                least = std::min(least, std::max(s.p50, 1e-4));
                most = std::max(most, std::max(s.p99, 1e-4));
            }
        }
        first_ = static_cast<int>(std::floor(std::log10(least)));
        if (std::log10(least) - first_ < 0.15) --first_;  // keeps the shortest bar visible
        last_ = std::max(static_cast<int>(std::ceil(std::log10(most))), first_ + 1);
    }
    int first() const { return first_; }
    int last() const { return last_; }
    double x(double value) const {
        const double share =
            (std::log10(std::max(value, 1e-6)) - first_) / static_cast<double>(last_ - first_);
        return kLeft + (kRight - kLeft) * std::clamp(share, 0.0, 1.0);
    }

private:
    int first_ = 0;
    int last_ = 1;
};

std::string textElement(double x, double y, const std::string& text, double size,
                        const std::string& more = "") {
    return "<text x=\"" + number(x, 1) + "\" y=\"" + number(y, 1) + "\" font-size=\"" +
           number(size, 0) + "\"" + (more.empty() ? "" : " " + more) + ">" + escaped(text) +
           "</text>\n";
}

std::string bar(const Axis& axis, double y, const Summary& s, const std::string& kind,
                const std::string& label) {
    const double end = std::max(axis.x(s.p50), kLeft + 2);
    const double tail = axis.x(s.p99);
    const double middle = y + kBar / 2;
    std::string out = "<rect class=\"" + kind + "\" x=\"" + number(kLeft, 1) + "\" y=\"" +
                      number(y, 1) + "\" width=\"" + number(end - kLeft, 1) + "\" height=\"" +
                      number(kBar, 1) + "\" rx=\"1.5\"/>\n";
    if (tail > end) {
        out += "<line class=\"tail\" x1=\"" + number(end, 1) + "\" y1=\"" + number(middle, 1) +
               "\" x2=\"" + number(tail, 1) + "\" y2=\"" + number(middle, 1) + "\"/>\n";
    }
    return out + textElement(std::max(end, tail) + 6, middle + 4, label, 11, "class=\"dim\"");
}

std::string legend(bool docker) {
    const double y = 68;
    std::string out = "<rect class=\"hearth\" x=\"" + number(kLeft, 1) + "\" y=\"" +
                      number(y - 10, 1) + "\" width=\"12\" height=\"12\" rx=\"1.5\"/>\n" +
                      textElement(kLeft + 18, y, "Hearth", 12);
    if (docker) {
        out += "<rect class=\"docker\" x=\"" + number(kLeft + 78, 1) + "\" y=\"" +
               number(y - 10, 1) + "\" width=\"12\" height=\"12\" rx=\"1.5\"/>\n" +
               textElement(kLeft + 96, y, "Docker Engine API", 12);
    }
    return out + textElement(kLeft + (docker ? 222 : 78), y,
                             "bar: median, line: 99th percentile; lower is better", 12,
                             "class=\"dim\"");
}

std::string footer(const BenchReport& report, double y) {
    std::string versions = "Hearth " + report.server_version + " (" + report.runtime + ")";
    if (!report.docker_version.empty()) versions += ", Docker " + report.docker_version;
    versions += ", " + std::to_string(report.rounds) + " interleaved rounds, " +
                report.started_at.substr(0, 10);
    std::string where = report.kernel + ", " + std::to_string(report.processors) +
                        " processors, load average " + number(report.load_before[0], 2);
    where += report.trustworthy() ? "" : "; the machine was busy: trust the ratios only";
    return textElement(16, y, versions, 11, "class=\"dim\"") +
           textElement(16, y + 16, where, 11, "class=\"dim\"");
}

}  // namespace

std::string benchChart(const BenchReport& report) {
    std::vector<BenchReport::Row> rows;
    for (const BenchReport::Row& row : report.rows()) {
        if (!row.hearth.empty()) rows.push_back(row);
    }
    if (rows.empty()) throw Error(ErrorCode::Unsupported, "there is nothing to draw");
    const Axis axis(rows);
    double height = kTop;
    for (const BenchReport::Row& row : rows) height += row.docker.empty() ? kRowSingle : kRowPair;
    const double bottom = height;
    height += kFoot;

    std::string svg = "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " +
                      number(kWidth, 0) + " " + number(height, 0) + "\" width=\"" +
                      number(kWidth, 0) + "\" height=\"" + number(height, 0) +
                      "\" role=\"img\" aria-labelledby=\"t\">\n<title id=\"t\">" +
                      escaped("Hearth's times by operation, in milliseconds" +
                              std::string(report.docker_version.empty() ? "" : ", and Docker's")) +
                      "</title>\n" + kStyle + "<rect class=\"page\" width=\"" + number(kWidth, 0) +
                      "\" height=\"" + number(height, 0) + "\"/>\n";
    const bool docker = !report.docker_version.empty();
    svg += textElement(16, 34, docker ? "Hearth beside Docker, in the same run" : "Hearth", 20,
                       "font-weight=\"700\"");
    svg += legend(docker);
    for (int decade = axis.first(); decade <= axis.last(); ++decade) {
        const double value = std::pow(10.0, decade);
        const double x = axis.x(value);
        svg += "<line class=\"grid\" x1=\"" + number(x, 1) + "\" y1=\"" + number(kTop - 8, 1) +
               "\" x2=\"" + number(x, 1) + "\" y2=\"" + number(bottom, 1) + "\"/>\n" +
               textElement(x, bottom + 16, number(value, std::max(0, -decade)) + " ms", 11,
                           "class=\"dim\" text-anchor=\"middle\"");
    }
    double y = kTop;
    for (const BenchReport::Row& row : rows) {
        const bool pair = !row.docker.empty();
        const Summary h = summarize(row.hearth);
        svg +=
            textElement(kLeft - 10, y + kBar - 1, titleOf(row.series), 13, "text-anchor=\"end\"");
        svg += bar(axis, y, h, "hearth", milliseconds(h.p50));
        if (pair) {
            const Summary d = summarize(row.docker);
            svg += textElement(kLeft - 10, y + 2 * kBar + 2, dockerTitleOf(row.series), 11,
                               "class=\"dim\" text-anchor=\"end\"");
            svg += bar(axis, y + kBar + 3, d, "docker", milliseconds(d.p50));
            if (const auto ratio = ratioP50(row)) {
                svg += textElement(kWidth - 16, y + kBar + 7, ratioText(*ratio), 17,
                                   "class=\"ratio\" text-anchor=\"end\"");
            }
        }
        y += pair ? kRowPair : kRowSingle;
    }
    return svg + footer(report, bottom + 44) + "</svg>\n";
}

}  // namespace hearth::cli
