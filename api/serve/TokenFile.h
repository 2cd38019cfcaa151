#pragma once

#include <chrono>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "api/config/ServeConfig.h"
#include "base/Mutex.h"
#include "controller/store/TokenStore.h"
#include "metrics/Log.h"
#include "metrics/Metrics.h"

namespace hearth::program {

/// Follows the tokens of the file of --config. Checks that file and the files that hold its tokens
/// every second and puts their tokens in force. A file that cannot be read, is wrong or is empty
/// changes nothing; the log reports the reason once, and a metric shows the state. Other settings
/// of the file need a restart.
class TokenFile {
public:
    /// The pause between two looks. A file must be unchanged that long before it is read, because
    /// an editor may be in the middle of writing it.
    static constexpr std::chrono::seconds kLook{1};

    /// `path` absolute; `known`: the tokens that are in force. References must outlive it.
    TokenFile(std::string path, const std::vector<cli::TokenConfig>& known,
              controller::TokenStore& tokens, metrics::Metrics& metrics, metrics::Log& log);
    ~TokenFile();
    TokenFile(const TokenFile&) = delete;
    TokenFile& operator=(const TokenFile&) = delete;

    /// Reads the file at once, because it may have changed since the configuration was read, then
    /// follows it in a thread of its own. Call once.
    void begin();
    /// Makes the thread read the file soon, even if it seems unchanged. Any thread.
    void hurry();
    /// Looks once; for the thread, and for tests without it.
    void look();

private:
    std::string states() const;
    void run(const std::stop_token& stop);
    /// Puts the tokens in the files in force.
    void read();
    std::vector<cli::TokenConfig> parsed() const;
    void take(const std::vector<cli::TokenConfig>& tokens);

    const std::string path_;
    controller::TokenStore& tokens_;
    metrics::Metrics& metrics_;
    metrics::Log& log_;
    // Members that only the thread uses.
    std::vector<std::string> files_;  ///< the file of --config, then the files that hold tokens
    std::string in_force_;            ///< states() of the files that are in force
    std::string seen_;                ///< states() of the last look
    std::string fault_;               ///< the reason if the files are not in force; else empty
    bool any_;                        ///< the file that is in force has tokens

    Mutex mutex_;
    StoppableCondition wake_;
    bool hurried_ HEARTH_GUARDED_BY(mutex_) = false;
    std::jthread thread_;  ///< last: it uses all of the above
};

}  // namespace hearth::program
