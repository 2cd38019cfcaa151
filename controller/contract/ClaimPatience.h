#pragma once

#include <chrono>
#include <exception>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>

#include "base/Error.h"

namespace hearth::controller {

class ClaimWait;

/// How a claim waits if its image, or then a sandbox, is not there at once.
struct ClaimPatience {
    /// The longest wait for each of the two, if the server would wait longer.
    std::chrono::milliseconds most = std::chrono::hours(1);
    /// False: the claim throws MustWait instead of waiting. Its only effect then is that the claim
    /// stands in line, if it has a `wait`.
    bool waits = true;
    /// Cancels the claim: it stops waiting, and everything that was made for it is ended.
    std::stop_token stop{};
    /// The claim's place in line. With it a waiting claim reports its progress, and one that does
    /// not wait at present keeps its place.
    std::shared_ptr<ClaimWait> wait{};
};

/// Thrown by a claim that would have to wait but may not (ClaimPatience::waits). Not an Error,
/// because it is not a failure: its catcher claims again where waiting blocks nothing.
class MustWait final : public std::exception {
public:
    /// `what_for`: as in "waiting for …".
    explicit MustWait(std::string what_for) : what_for_(std::move(what_for)) {}
    const char* what() const noexcept override { return what_for_.c_str(); }

private:
    std::string what_for_;
};

/// The error of a claim that its caller cancelled; no client sees it.
inline Error takenBack() {
    return Error(ErrorCode::Unavailable, "the claim was cancelled by its caller");
}

}  // namespace hearth::controller
