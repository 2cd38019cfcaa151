#include <unistd.h>

#include "api/serve/process/Capture.h"
#include "api/serve/process/ProgramPath.h"
#include "api/serve/runtimes/Runtimes.h"
#include "base/Error.h"
#include "pool/image/ImageStock.h"
#include "pool/launcher/LauncherClient.h"
#include "pool/runtime/oci/OciRuntime.h"

namespace hearth::program {
namespace {

class PreparedOci final : public PreparedRuntime {
public:
    PreparedOci(const Instance& instance, Fd launcher)
        : instance_(instance), socket_(std::move(launcher)) {}

    std::unique_ptr<pool::ContainerRuntime> make(const RuntimeParts& parts) override {
        launcher_ = std::make_unique<pool::LauncherClient>(
            std::move(socket_), parts.log,
            [&log = parts.log, died = parts.died] {
                log.error("launcher.died", {{"hint", "sandboxes live on; start hearth again"}});
                died();
            },
            pool::LauncherClient::Waiting{
                .stuck = [&metrics = parts.metrics](const std::string& operation,
                                                    std::size_t count) {
                    metrics.launcherOperationsStuck(operation, static_cast<double>(count));
                }});
        return std::make_unique<pool::OciRuntime>(instance_, *launcher_);
    }
    bool usesOurDisk() const override { return true; }
    void measure(metrics::Metrics& metrics) const override {
        const pool::image::ImageStock images = pool::image::imageStock(instance_.data_dir);
        metrics.images(static_cast<double>(images.images), static_cast<double>(images.bytes));
        if (!launcher_) return;
        const pool::LauncherClient::State launcher = launcher_->state();
        metrics.launcher(launcher.up, static_cast<double>(launcher.in_flight),
                         static_cast<double>(pool::LauncherClient::leasedRanges(instance_)));
    }

private:
    const Instance instance_;
    Fd socket_;
    std::unique_ptr<pool::LauncherClient> launcher_;
};

/// The factory for containers that the launcher makes, the only process that stays root.
class OciFactory final : public RuntimeFactory {
public:
    RuntimeFit fit(const cli::ServeConfig& config) const override {
        if (::geteuid() != 0) return {false, "the server was not started as root"};
        if (!cli::capture({*config.oci_runtime, "--version"})) {
            return {false, "there is no " + *config.oci_runtime};
        }
        return {true, "the server was started as root, and the OCI runtime is there"};
    }
    void require(const cli::ServeConfig& config) const override {
        const std::string& program = *config.oci_runtime;
        if (cli::capture({program, "--version"})) return;
        const std::string how =
            config.oci_runtime.origin.empty()
                ? "there is no " + program
                : config.oci_runtime.origin + ": there is no program " + program;
        throw Error(ErrorCode::InvalidArgument, how + ", which makes the containers")
            .hint("apt-get install -y " + (program == "crun" ? program : std::string("runc")) +
                  ", or name another with --oci-runtime; with Docker, --runtime docker needs none");
    }
    std::unique_ptr<PreparedRuntime> prepare(const cli::ServeConfig& config,
                                             const Instance& instance,
                                             const controller::Account& account) const override {
        pool::LauncherOptions options;
        options.instance = instance;
        options.runtime = *config.oci_runtime;
        options.agent_path = cli::besideProgram("hearth-agent");
        options.server_uid = account.uid;
        options.server_gid = account.gid;
        options.log_format = *config.log_format;
        options.cdi.paths = *config.cdi_folders;
        // The launcher makes the server's directories.
        return std::make_unique<PreparedOci>(instance, pool::LauncherClient::forkLauncher(options));
    }
};

}  // namespace

std::unique_ptr<RuntimeFactory> makeOciFactory() {
    return std::make_unique<OciFactory>();
}

}  // namespace hearth::program
