#include "api/command/Layers.h"

#include <Poco/StringTokenizer.h>

namespace hearth::cli {
namespace {

/// No argument or variable contains it, and the file's reader refuses it: Poco stores a list as one
/// value.
constexpr char kBetween = '\0';
constexpr std::array<std::string_view, 4> kSourceNames{"default", "file", "env", "flag"};

}  // namespace

std::string_view sourceName(Source source) noexcept {
    return kSourceNames.at(static_cast<std::size_t>(source));
}

Layers::Layers() : all_(new Poco::Util::LayeredConfiguration) {
    for (std::size_t i = 0; i < sources_.size(); ++i) {
        sources_.at(i) = new Poco::Util::MapConfiguration;
        all_->add(sources_.at(i), -static_cast<int>(i));  // Poco looks in the lowest number first
    }
}

void Layers::put(const std::string& name, const LayeredValue& value) {
    // The source is stored before the texts: both belong to the same layer.
    std::string raw = static_cast<char>('0' + static_cast<int>(value.source)) + value.origin;
    for (const std::string& text : value.texts) raw += kBetween + text;
    sources_.at(static_cast<std::size_t>(value.source))->setString(name, raw);
}

std::optional<LayeredValue> Layers::get(const std::string& name) const {
    // getString() would replace a "${…}" in the value.
    const std::string raw = all_->getRawString(name, "");
    if (raw.empty()) return std::nullopt;
    const Poco::StringTokenizer items(raw, std::string(1, kBetween));
    return LayeredValue{
        {items.begin() + 1, items.end()}, static_cast<Source>(raw[0] - '0'), items[0].substr(1)};
}

}  // namespace hearth::cli
