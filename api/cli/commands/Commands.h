#pragma once

#include "api/command/Command.h"

namespace hearth::cli {

// Each is defined in its own file; Cli.cpp holds the table, including commands of other rooms.
Command makeServe();
Command makeConfig();
Command makeMcp();
Command makeRun();
Command makeOpen();
Command makeExec();
Command makeLogs();
Command makeLogLevel();
Command makeAttach();
Command makePs();
Command makeStop();
Command makeShell();
Command makeList();
Command makeRemove();
Command makeDescribe();
Command makeExplain();
Command makeScale();
Command makeSchedule();
Command makeVersion();
Command makeGet();
Command makeApply();
Command makeDelete();
Command makeDrain();
Command makeUndrain();
Command makeImage();
Command makeToken();
Command makeQuota();
Command makeGpu();
Command makeUsage();
Command makePackages();
Command makeMcpConfig();
Command makeSimulate();
Command makeAgentFolder();
Command makeCrds();

}  // namespace hearth::cli
