#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hearth::cli {

enum class Side { Hearth, Docker };

/// Takes one measurement, in milliseconds, of a named series.
using Record = std::function<void(Side side, const std::string& series, double milliseconds)>;

/// One operation of a round. Both functions throw if the answer is not the expected one.
struct BenchOperation {
    std::function<void()> prepare;  ///< not measured; may be empty
    std::function<void(const Record&)> run;
};

/// Returns the time that `work` takes, in milliseconds.
double timed(const std::function<void()>& work);

}  // namespace hearth::cli
