#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cerrno>

#include "api/serve/GpuSetup.h"
#include "api/serve/process/Privileges.h"
#include "tests/support/gpu/StandinGpus.h"

using namespace hearth;
using hearth::test::StandinGpus;

TEST_CASE("a server without privileges that may run no program lists and scrubs GPUs",
          "[unit][cli]") {
    StandinGpus machine;
    machine.add("gpu0", StandinGpus::uuid(0));
    machine.leaveTraces("gpu0");
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        pool::GpuOptions options = program::gpuOptions(cli::ServeConfig());
        options.helper.program = HEARTH_GPU_PROGRAM;
        options.helper.library = HEARTH_NVML_STANDIN;
        options.helper.cuda = HEARTH_CUDA_STANDIN;
        options.helper.uid.reset();  // the stand-in's folder belongs to the test's user
        pool::gpu::GpuHelper::Started helper = pool::gpu::GpuHelper::start(options.helper);
        controller::stayAsWeAre();
        ::execl("/nonexistent", "nonexistent", nullptr);
        int failed = errno == EPERM ? 0 : 4;  // the filter is in force
        {
            const auto host = pool::makeGpuHost(options, std::move(helper));
            if (host->devices().size() != 1) failed |= 1;
            if (!host->scrub(StandinGpus::uuid(0)).clean) failed |= 2;
        }
        ::_exit(failed);
    }
    int status = -1;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 0);
    CHECK(machine.blank("gpu0"));
}

TEST_CASE("the settings name the libraries and where the helper lies", "[unit][cli]") {
    cli::ServeConfig config;
    config.gpu_library.value = "libother.so";
    config.cuda_library.value = "/opt/libcuda.so";
    const pool::GpuOptions options = program::gpuOptions(config);
    CHECK(options.helper.library == "libother.so");
    CHECK(options.helper.cuda == "/opt/libcuda.so");
    CHECK(options.helper.program.ends_with("/hearth-gpu"));
}
