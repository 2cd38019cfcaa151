#include "controller/program/OfflineState.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "controller/Database.h"
#include "controller/Journal.h"
#include "controller/SpecStore.h"
#include "controller/TokenStore.h"

namespace hearth::program {
namespace {

class OfflineTokens final : public controller::Tokens {
public:
    explicit OfflineTokens(const std::string& data_dir)
        : log_(2, metrics::LogLevel::Error),
          journal_(data_dir + "/state/hearth.db", clock_, log_),
          store_(journal_, {}, clock_) {}

    bool configured() const override { return store_.configured(); }
    std::optional<controller::Principal> authenticate(std::string_view token) const override {
        return store_.authenticate(token);
    }
    std::pair<controller::TokenView, std::string> create(
        const controller::Principal& who, const std::string& name, const std::string& tenant,
        controller::Role role, std::optional<std::int64_t> ttl_seconds) override {
        return store_.create(who, name, tenant, role, ttl_seconds);
    }
    std::vector<controller::TokenView> list(const controller::Principal& who) const override {
        return store_.list(who);
    }
    void remove(const controller::Principal& who, const std::string& id) override {
        store_.remove(who, id);
    }

private:
    SystemClock clock_;
    metrics::Log log_;
    controller::Journal journal_;
    controller::TokenStore store_;
};

}  // namespace

std::unique_ptr<controller::Tokens> offlineTokens(const std::string& data_dir) {
    return std::make_unique<OfflineTokens>(data_dir);
}

std::vector<controller::Pool> declaredInFiles(const cli::ServeConfig& config) {
    std::vector<controller::Pool> pools;
    for (const std::string& file : *config.pools) {
        std::error_code error;
        const bool folder = std::filesystem::is_directory(file, error);
        std::ifstream in(file);
        if (!in || folder) {
            throw cli::UsageError(
                config.pools.origin + ": " + file +
                    " cannot be read: " + std::strerror(folder ? EISDIR : errno),
                "name a file that declares pools; sandbox_images/python/pool.yaml "
                "is one");
        }
        std::ostringstream text;
        text << in.rdbuf();
        for (controller::Pool& pool : controller::parsePoolYaml(text.str(), file)) {
            pools.push_back(std::move(pool));
        }
    }
    return pools;
}

std::vector<controller::Pool> declaredPools(const std::string& data_dir) {
    const std::string path = data_dir + "/state/hearth.db";
    std::vector<controller::Pool> pools;
    if (!std::filesystem::exists(path)) return pools;
    controller::Database database(path);
    controller::Statement row(database, "SELECT document FROM pools");
    while (row.step()) pools.push_back(controller::storedPool(parseJson(row.text(0))));
    return pools;
}

}  // namespace hearth::program
