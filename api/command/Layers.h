#pragma once

#include <Poco/AutoPtr.h>
#include <Poco/Util/LayeredConfiguration.h>
#include <Poco/Util/MapConfiguration.h>

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::cli {

/// The source of a value, weakest first.
enum class Source { Default, File, Env, Flag };
/// "default", "file", "env", "flag".
std::string_view sourceName(Source source) noexcept;

/// A value, or the items of a list, and its source.
struct LayeredValue {
    std::vector<std::string> texts;
    Source source = Source::Default;
    std::string origin = {};  ///< "--listen", "HEARTH_LISTEN", "/etc/hearth.yaml:3"
};

/// Values by name in Poco's layers: a stronger source hides a weaker one's value, for a list all
/// items. Copies share their values.
class Layers {
public:
    Layers();
    /// Replaces this source's earlier value of the name.
    void put(const std::string& name, const LayeredValue& value);
    /// Returns the strongest source's value.
    std::optional<LayeredValue> get(const std::string& name) const;

private:
    std::array<Poco::AutoPtr<Poco::Util::MapConfiguration>, 4> sources_;
    Poco::AutoPtr<Poco::Util::LayeredConfiguration> all_;
};

}  // namespace hearth::cli
