#include "api/serve/TokenFile.h"

#include <utility>

#include "api/config/ConfigFile.h"
#include "api/config/TextFile.h"
#include "api/serve/Greeting.h"
#include "api/serve/PartOptions.h"
#include "base/FileState.h"

namespace hearth::program {
namespace {

constexpr std::size_t kMost = 1U << 20U;

std::vector<std::string> filesOf(const std::string& path,
                                 const std::vector<cli::TokenConfig>& tokens) {
    std::vector<std::string> files{path};
    for (const cli::TokenConfig& token : tokens) {
        if (!token.token_file.empty()) files.push_back(token.token_file);
    }
    return files;
}

}  // namespace

TokenFile::TokenFile(std::string path, const std::vector<cli::TokenConfig>& known,
                     controller::TokenStore& tokens, metrics::Metrics& metrics, metrics::Log& log)
    : path_(std::move(path)),
      tokens_(tokens),
      metrics_(metrics),
      log_(log),
      files_(filesOf(path_, known)),
      any_(!known.empty()) {}

TokenFile::~TokenFile() = default;

void TokenFile::begin() {
    read();
    thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

void TokenFile::hurry() {
    const MutexLock lock(mutex_);
    hurried_ = true;
    wake_.notifyAll();
}

void TokenFile::run(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
        bool now = false;
        {
            const MutexLock lock(mutex_);
            wake_.waitFor(mutex_, stop, kLook,
                          [this]() HEARTH_REQUIRES(mutex_) { return hurried_; });
            now = std::exchange(hurried_, false);
        }
        if (now) {
            read();
        } else {
            look();
        }
    }
}

std::string TokenFile::states() const {
    std::string all;
    for (const std::string& file : files_) all += fileState(file);
    return all;
}

void TokenFile::look() {
    const std::string now = states();
    // While there is a fault, it may be in a file that is not in files_ yet.
    if (fault_.empty() && now == in_force_) return;
    if (now != std::exchange(seen_, now)) return;
    read();
}

std::vector<cli::TokenConfig> TokenFile::parsed() const {
    // A full disk or a killed editor leaves an empty file.
    const std::string text = cli::readTextFile(path_, kMost);
    if (any_ && text.find_first_not_of(" \t\r\n") == std::string::npos) {
        throw cli::UsageError(path_ + ": the file is empty",
                              "write `tokens: []` to take all tokens away");
    }
    cli::Layers others;
    return *cli::readConfigFile(path_, others);
}

void TokenFile::read() {
    std::string fault;
    std::string hint;
    try {
        // Reads twice; if the states are the same, the files were not written meanwhile.
        files_ = filesOf(path_, parsed());
        const std::string before = states();
        const std::vector<cli::TokenConfig> tokens = parsed();
        seen_ = states();
        if (before != seen_ || filesOf(path_, tokens) != files_) return;
        take(tokens);
        in_force_ = seen_;
    } catch (const cli::UsageError& e) {
        fault = e.what();
        hint = e.hint() + "; ";
    } catch (const std::exception& e) {  // the tokens in force stay so
        fault = e.what();
    }
    metrics_.tokensStale(any_ && !fault.empty());
    if (fault == std::exchange(fault_, fault) || fault.empty()) return;
    hint +=
        "the tokens that were read before stay valid until the server's user can read a correct "
        "file";
    // A fault in a file that never had tokens is not a warning yet.
    const auto tell = any_ ? &metrics::Log::warn : &metrics::Log::info;
    (log_.*tell)("tokens.not_reloaded", {{"file", path_}, {"error", fault}, {"hint", hint}});
}

void TokenFile::take(const std::vector<cli::TokenConfig>& tokens) {
    const controller::TokenStore::Change change = tokens_.configure(configuredTokens(tokens));
    any_ = !tokens.empty();
    if (change.added + change.removed == 0 && fault_.empty()) return;
    log_.info("tokens.reloaded", {{"file", path_},
                                  {"tokens", tokens.size()},
                                  {"added", change.added},
                                  {"removed", change.removed}});
    if (tokens_.configured() || change.removed == 0) return;
    log_.error("auth.closed", {{"error", "the last token was removed from the file of --config"},
                               {"hint", kOpenAgain}});
}

}  // namespace hearth::program
