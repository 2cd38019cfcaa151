#include "api/serve/OfflineState.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/Error.h"
#include "base/Fd.h"
#include "controller/journal/Database.h"
#include "controller/journal/Journal.h"
#include "controller/quota/QuotaDocument.h"
#include "controller/spec/YamlDocument.h"
#include "controller/store/SpecStore.h"
#include "controller/store/StateFiles.h"
#include "controller/store/TokenHistory.h"
#include "controller/store/TokenStore.h"

namespace hearth::program {
namespace {

using controller::databasePath;

/// Creates a missing file for the user who owns its folder, because root may be here before the
/// server. True if the file is new in a used directory: then the database was lost.
bool makeDatabase(const std::string& data_dir) {
    const std::string path = databasePath(data_dir);
    const Fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!file) return false;  // it exists, or opening it reports the fault
    struct stat folder {};
    if (::geteuid() == 0 && ::stat((data_dir + "/state").c_str(), &folder) == 0 &&
        ::fchown(file.get(), folder.st_uid, folder.st_gid) != 0) {
        throwErrno("chown", path);
    }
    return controller::usedBefore(data_dir);
}

class OfflineTokens final : public controller::Tokens {
public:
    explicit OfflineTokens(const std::string& data_dir)
        : log_(2, metrics::LogLevel::Error),
          history_(controller::tokenHistoryPath(data_dir), makeDatabase(data_dir)),
          journal_(databasePath(data_dir), clock_, log_),
          store_(journal_, history_, {}, clock_) {}

    bool configured() const override { return store_.configured(); }
    bool open() const override { return store_.open(); }
    std::optional<controller::Authenticated> authenticate(std::string_view token) const override {
        return store_.authenticate(token);
    }
    std::optional<controller::Authenticated> anonymous() const override {
        return store_.anonymous();
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
    controller::TokenHistory history_;
    controller::Journal journal_;
    controller::TokenStore store_;
};

}  // namespace

std::unique_ptr<controller::Tokens> offlineTokens(const std::string& data_dir) {
    try {
        return std::make_unique<OfflineTokens>(data_dir);
    } catch (const controller::DamagedDatabase& e) {
        throw Error(ErrorCode::Conflict, databasePath(data_dir) + " is damaged: " + e.what())
            .hint(
                "start the server once: it keeps the damaged file for inspection and begins a new "
                "one");
    }
}

namespace {

std::string readDeclaration(const std::string& file, const std::string& origin, const char* hint) {
    std::error_code error;
    const bool folder = std::filesystem::is_directory(file, error);
    std::ifstream in(file);
    if (!in || folder) {
        throw cli::UsageError(
            origin + ": " + file + " cannot be read: " + std::strerror(folder ? EISDIR : errno),
            hint);
    }
    std::ostringstream text;
    text << in.rdbuf();
    return text.str();
}

cli::UsageError faultsOf(const Error& error, const std::string& origin, const std::string& file) {
    std::string what = origin;
    what.append(": ").append(file).append(": ").append(error.what());
    for (const FieldError& field : error.fields()) {
        what.append("; ").append(field.pointer).append(" ").append(field.reason);
    }
    return cli::UsageError(what, error.hint());
}

}  // namespace

std::vector<controller::Pool> declaredInFiles(const cli::Setting<std::vector<std::string>>& files) {
    std::vector<controller::Pool> pools;
    for (const std::string& file : *files) {
        const std::string text = readDeclaration(
            file, files.origin,
            "name a file that declares pools; sandbox_images/python/pool.yaml is one");
        for (controller::Pool& pool : controller::parsePoolYaml(text, file)) {
            pools.push_back(std::move(pool));
        }
    }
    return pools;
}

std::map<std::string, controller::QuotaSpec> quotasInFiles(
    const cli::Setting<std::vector<std::string>>& files) {
    std::map<std::string, controller::QuotaSpec> quotas;
    for (const std::string& file : *files) {
        const std::string text =
            readDeclaration(file, files.origin, "write `TENANT: {workspaces: 10}` lines");
        try {
            for (auto& [tenant, spec] :
                 controller::parseQuotas(controller::parseYamlDocument(text, file))) {
                if (!quotas.emplace(tenant, spec).second) {
                    throw Error(ErrorCode::InvalidSpec, "tenant " + tenant + " has two quotas");
                }
            }
        } catch (const Error& e) {
            throw faultsOf(e, files.origin, file);
        }
    }
    return quotas;
}

std::vector<auth::IssuerConfig> issuersInFile(const cli::Setting<std::string>& file) {
    if ((*file).empty()) return {};
    const std::string text = readDeclaration(
        *file, file.origin,
        "write `issuers:` and `- {issuer: URL, audience: NAME, tenant: NAME}` lines");
    try {
        return auth::parseIssuers(controller::parseYamlDocument(text, *file));
    } catch (const Error& e) {
        throw faultsOf(e, file.origin, *file);
    }
}

std::vector<controller::Pool> declaredPools(const std::string& data_dir) {
    const std::string path = databasePath(data_dir);
    std::vector<controller::Pool> pools;
    if (!std::filesystem::exists(path)) return pools;
    controller::Database database(path);
    controller::Statement row(database, "SELECT document FROM pools");
    while (row.step()) pools.push_back(controller::storedPool(parseJson(row.text(0))));
    return pools;
}

}  // namespace hearth::program
