#include "api/config/ServeConfig.h"

#include <charconv>
#include <filesystem>

#include "api/config/ConfigFile.h"
#include "api/config/Settings.h"
#include "api/mcp/seeds/Seeds.h"

namespace hearth::cli {

ServeConfig loadServeConfig(const Options& options) {
    Layers layers;
    for (const SettingRow& row : settings()) {
        if (const auto given = options.given(row.flag)) layers.put(row.name(), *given);
    }
    Setting<std::vector<TokenConfig>> tokens;
    const auto file = options.get("config");
    if (file) tokens = readConfigFile(*file, layers);
    ServeConfig config(layers);
    config.tokens = std::move(tokens);
    if (file && *file != "-") config.file = std::filesystem::absolute(*file).string();
    // An earlier system's clients look for it on the port in that system's documents.
    const auto port = mcp::seeds::seedPort(*config.compat);
    if (port && config.listen.source == Source::Default) {
        config.listen = {"127.0.0.1:" + std::to_string(*port), config.compat.source,
                         config.compat.origin};
    }
    return config;
}

bool ListenAddress::loopback() const {
    return host.starts_with("127.") || host == "::1" || host == "localhost";
}

std::optional<ListenAddress> parseListenAddress(std::string_view text) {
    const std::size_t colon = text.rfind(':');
    if (colon == std::string_view::npos) return std::nullopt;
    std::string_view host = text.substr(0, colon);
    const std::string_view port = text.substr(colon + 1);
    if (host.starts_with('[') && host.ends_with(']')) {
        host = host.substr(1, host.size() - 2);
        if (host.find(':') == std::string_view::npos) return std::nullopt;
    } else if (host.find(':') != std::string_view::npos) {
        return std::nullopt;
    }
    if (host.empty() || host.find_first_of("[]/ \t") != std::string_view::npos) return std::nullopt;
    ListenAddress address{std::string(host), 0};
    const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), address.port);
    if (error != std::errc{} || end != port.data() + port.size()) return std::nullopt;
    // "127.evil.example" is a name, which may resolve to any address.
    if (address.host.starts_with("127.") &&
        address.host.find_first_not_of("0123456789.") != std::string::npos) {
        return std::nullopt;
    }
    return address;
}

void checkExposure(const ServeConfig& config, bool has_tokens) {
    if (has_tokens) return;
    for (const auto& [key, setting] :
         {std::pair<std::string, const Setting<std::string>&>{"listen", config.listen},
          {"opsListen", config.ops_listen}}) {
        const auto address = parseListenAddress(setting.value);
        if (address && address->loopback()) continue;
        throw UsageError(
            "refusing to listen on " + setting.value + " (" + key +
                ") without a token: whoever reaches it could run code here",
            "make one with `hearth token create --role admin`, or listen on 127.0.0.1");
    }
}

}  // namespace hearth::cli
