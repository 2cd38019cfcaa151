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

/// Follows the tokens of the file of --config: it and the files that hold its tokens are looked at
/// every second, and what they say is put in force. A file that cannot be read, is wrong or is
/// empty changes nothing; the log says why, once, and a metric that it is so. Other settings of the
/// file need a restart.
class TokenFile {
public:
    /// Between two looks, and for how long a file must not have changed before it is read: whoever
    /// writes it in place may be in the middle.
    static constexpr std::chrono::seconds kLook{1};

    /// `path` absolute; `known`: the tokens that are in force. References outlive it.
    TokenFile(std::string path, const std::vector<cli::TokenConfig>& known,
              controller::TokenStore& tokens, metrics::Metrics& metrics, metrics::Log& log);
    ~TokenFile();
    TokenFile(const TokenFile&) = delete;
    TokenFile& operator=(const TokenFile&) = delete;

    /// Reads it at once, for it may have changed since the configuration was read, and from then on
    /// in a thread of its own. Call once.
    void begin();
    /// Has it read soon, also where nothing seems to have changed. Any thread.
    void hurry();
    /// One look, for the thread and for tests without it.
    void look();

private:
    std::string states() const;
    void run(const std::stop_token& stop);
    /// Puts in force what the files say.
    void read();
    std::vector<cli::TokenConfig> parsed() const;
    void take(const std::vector<cli::TokenConfig>& tokens);

    const std::string path_;
    controller::TokenStore& tokens_;
    metrics::Metrics& metrics_;
    metrics::Log& log_;
    // Members of the thread.
    std::vector<std::string> files_;  ///< of --config, then those that hold tokens
    std::string in_force_;            ///< states() of what was read
    std::string seen_;                ///< states() of the last look
    std::string fault_;               ///< why the files are not in force; empty: they are
    bool any_;                        ///< the file that is in force has tokens

    Mutex mutex_;
    StoppableCondition wake_;
    bool hurried_ HEARTH_GUARDED_BY(mutex_) = false;
    std::jthread thread_;  ///< last: it uses all of the above
};

}  // namespace hearth::program
