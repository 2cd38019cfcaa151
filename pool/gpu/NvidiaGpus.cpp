#include "pool/gpu/NvidiaGpus.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>

#include "base/Clock.h"
#include "base/Error.h"
#include "base/ScopeExit.h"
#include "pool/spec/GpuUuid.h"

namespace hearth::pool {
namespace {

using std::chrono::steady_clock;

const std::string kItsGpu = "its GPU: ";
constexpr const char* kSilent = "the driver does not answer since ";
constexpr auto kKilledWithin = std::chrono::milliseconds(5000);

void addReason(std::string& reasons, const std::string& one) {
    if (one.empty() || reasons.find(one) != std::string::npos) return;
    reasons += (reasons.empty() ? "" : "; ") + one;
}

const GpuDevice* findDevice(const std::vector<GpuDevice>& devices, const std::string& uuid) {
    const auto found = std::ranges::find(devices, uuid, &GpuDevice::uuid);
    return found == devices.end() ? nullptr : &*found;
}

Fd newEvent() {
    Fd fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!fd) throwErrno("eventfd");
    return fd;
}

GpuScrub unknownOutcome(std::string why) {
    return {false, std::move(why), 0, true};
}

}  // namespace

NvidiaGpus::NvidiaGpus(const GpuOptions& options, gpu::GpuHelper::Started helper, GpuTenure tenure)
    : options_(options),
      tenure_(std::move(tenure)),
      helper_(std::move(helper), options.helper.program),
      stopping_(newEvent()),
      absence_("the first look at this machine's GPUs has not ended"),
      watcher_([this] { watch(); }) {
    const MutexLock lock(mutex_);
    changed_.waitFor(mutex_, options_.look_limit,
                     [this]() HEARTH_REQUIRES(mutex_) { return ended_ > 0; });
}

NvidiaGpus::~NvidiaGpus() {
    stop();
}

std::vector<GpuDevice> NvidiaGpus::devices() const {
    const MutexLock lock(mutex_);
    return devices_;
}

std::string NvidiaGpus::absence() const {
    const MutexLock lock(mutex_);
    return devices_.empty() ? absence_ : "";
}

void NvidiaGpus::stop() noexcept {
    {
        const MutexLock lock(mutex_);
        stopped_ = true;
    }
    changed_.notifyAll();
    const std::uint64_t one = 1;
    static_cast<void>(
        ::write(stopping_.get(), &one, sizeof one));  // a failed write means full: then it is set
}

bool NvidiaGpus::refresh(std::chrono::milliseconds limit) {
    const MutexLock lock(mutex_);
    const std::uint64_t wanted = begun_ + 1;  // the look under way may miss recent changes
    asked_ = true;
    changed_.notifyAll();
    changed_.waitFor(mutex_, limit, [this, wanted]() HEARTH_REQUIRES(mutex_) {
        return ended_ >= wanted || stopped_;
    });
    return ended_ >= wanted;
}

void NvidiaGpus::watch() {
    Program program;
    do {
        try {
            if (!lookOnce(program)) return;
        } catch (const std::exception& e) {
            program.reset();
            publishFailure(e.what(), true);
        }
    } while (pause());
}

/// A driver may answer late, or hold its program for good, so that it cannot even be killed: no
/// second program is started beside it.
gpu::GpuProgram::Heard NvidiaGpus::awaitLate(gpu::GpuProgram& program, std::string& line) {
    using Heard = gpu::GpuProgram::Heard;
    const int stop = stopping_.get();
    const Heard heard = program.listen(line, steady_clock::now() + options_.give_up_look, stop);
    if (heard != Heard::Late) return heard;
    program.kill();
    return program.listen(line, steady_clock::time_point::max(), stop);
}

/// Returns false once stop() was called.
bool NvidiaGpus::lookOnce(Program& program) {
    {
        const MutexLock lock(mutex_);
        if (stopped_) return false;
        ++begun_;
        asked_ = false;
    }
    using Heard = gpu::GpuProgram::Heard;
    const std::string now = formatRfc3339(std::chrono::system_clock::now());
    std::string line;
    Heard heard = Heard::Ended;
    // A program that ended since the last look, perhaps killed, is started again.
    for (int attempt = 0; attempt < 2 && heard == Heard::Ended; ++attempt) {
        if (!program) program.emplace(helper_.spawn("watch"));
        if (program->ask("look")) {
            const auto until = steady_clock::now() + options_.look_limit;
            heard = program->listen(line, until, stopping_.get());
            if (heard == Heard::Late) {
                if (silent_since_.empty()) silent_since_ = now;
                publishFailure(kSilent + silent_since_, false);
                heard = awaitLate(*program, line);
            }
        }
        if (heard == Heard::Ended) program.reset();
    }
    if (heard == Heard::Stopped) return false;
    if (heard != Heard::Line) {
        program.reset();
        publishFailure(silent_since_.empty()
                           ? "hearth-gpu, which asks the driver, ended without an answer"
                           : kSilent + silent_since_,
                       true);
        return true;
    }
    silent_since_.clear();
    const gpu::GpuLook look = gpu::decodeLook(line);
    if (!look.absence.empty()) program.reset();
    publish(look);
    return true;
}

/// Waits for the next look's time, or for a call of refresh(). False once stop() was called.
bool NvidiaGpus::pause() {
    const MutexLock lock(mutex_);
    const auto wait = devices_.empty() ? options_.absent_look_every : options_.look_every;
    changed_.waitFor(mutex_, wait, [this]() HEARTH_REQUIRES(mutex_) { return asked_ || stopped_; });
    return !stopped_;
}

void NvidiaGpus::endLook() {
    ended_ = begun_;
    changed_.notifyAll();
}

void NvidiaGpus::publish(const gpu::GpuLook& look) {
    const MutexLock lock(mutex_);
    for (const auto& [uuid, fault] : look.lasting) lasting_[uuid] = fault;
    absence_ = look.absence;
    std::vector<GpuDevice> now = look.devices;
    for (const GpuDevice& before : devices_) {
        if (findDevice(now, before.uuid) != nullptr) continue;
        const GpuDevice* parent = findDevice(look.devices, before.parent);
        // MIG instances come and go as the operator divides their GPU; a GPU does not.
        if (parent != nullptr && parent->fault.empty()) continue;
        now.push_back(before);
        now.back().fault = !look.absence.empty() ? look.absence
                           : parent != nullptr   ? kItsGpu + parent->fault
                                                 : "the driver does not list it any more";
    }
    for (GpuDevice& device : now) {
        const auto own = lasting_.find(device.uuid);
        if (own != lasting_.end()) addReason(device.fault, own->second);
        const auto of_gpu = lasting_.find(device.parent);
        if (of_gpu != lasting_.end()) addReason(device.fault, kItsGpu + of_gpu->second);
    }
    devices_ = std::move(now);
    endLook();
}

void NvidiaGpus::publishFailure(const std::string& why, bool ended) {
    const MutexLock lock(mutex_);
    absence_ = why;
    for (GpuDevice& device : devices_) device.fault = why;
    if (ended) {
        endLook();
    } else {
        changed_.notifyAll();
    }
}

std::string NvidiaGpus::unfitForScrub(const std::string& uuid) const {
    const MutexLock lock(mutex_);
    if (stopped_) return "the server ends";
    const GpuDevice* found = findDevice(devices_, uuid);
    if (found == nullptr) {
        return "this machine has no GPU " + uuid +
               (devices_.empty() ? ": " + absence_ : std::string());
    }
    if (!found->fault.empty()) return found->fault;
    if (found->split) return "it is in MIG mode: its instances are scrubbed, one by one";
    return {};
}

GpuScrub NvidiaGpus::scrub(const std::string& uuid) {
    try {
        if (!isGpuUuid(uuid)) return {false, "\"" + uuid + "\" is not a GPU's uuid", 0};
        if (std::string unfit = unfitForScrub(uuid); !unfit.empty()) {
            return unknownOutcome(std::move(unfit));
        }
        {
            const MutexLock lock(mutex_);
            if (!scrubbed_.insert(uuid).second) return unknownOutcome("another scrub of it runs");
        }
        const ScopeExit over([this, &uuid] {
            const MutexLock lock(mutex_);
            scrubbed_.erase(uuid);
        });
        GpuScrub done = runScrub(uuid);
        if (!done.clean) return done;
        done.why = afterScrub(uuid);
        done.clean = done.why.empty();
        done.unknown = !done.clean;
        return done;
    } catch (const std::exception& e) {
        return unknownOutcome(e.what());
    }
}

GpuScrub NvidiaGpus::runScrub(const std::string& uuid) {
    using Heard = gpu::GpuProgram::Heard;
    gpu::GpuProgram program = helper_.spawn("scrub " + uuid);
    std::string line;
    const Heard heard =
        program.listen(line, steady_clock::now() + options_.scrub_timeout, stopping_.get());
    if (heard == Heard::Line) return gpu::decodeScrub(line);
    if (heard == Heard::Ended) return unknownOutcome("the scrub's program ended without a result");
    program.kill();
    std::string why = heard == Heard::Stopped
                          ? "the server ends"
                          : "the scrub had not ended after " +
                                std::to_string(options_.scrub_timeout.count() / 1000) +
                                " s and was killed";
    if (heard == Heard::Late && !program.waitEnd(kKilledWithin)) {
        why += ", which the driver does not let it be";
    }
    if (heard == Heard::Stopped) return unknownOutcome(std::move(why));
    return {false, std::move(why), 0};
}

/// Returns why the device must not be offered, since a scrub can find a fault; mostly empty.
std::string NvidiaGpus::afterScrub(const std::string& uuid) {
    if (!refresh(options_.look_limit)) return "the driver does not answer after the scrub";
    return unfitForScrub(uuid);
}

std::unique_ptr<GpuHost> makeGpuHost(const GpuOptions& options, gpu::GpuHelper::Started helper,
                                     GpuTenure tenure) {
    if (options.helper.library == gpu::kNoLibrary) {
        return std::make_unique<NoGpus>("GPUs are not looked for: the setting gpuLibrary is none");
    }
    return std::make_unique<NvidiaGpus>(options, std::move(helper), std::move(tenure));
}

}  // namespace hearth::pool
