/// \file
/// Tools to read and change files within a workspace, and a shell.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "watchdog/artifact_store.h"
#include "watchdog/subprocess.h"
#include "watchdog/tool.h"
#include "watchdog/workspace.h"

// Without a workspace, or without a store of artifacts to read, these return null, which
// `ToolRegistry::add` refuses.

namespace watchdog {

/// `read_file {path, offset?, limit?}`: a page of a file, `limit` bytes at most.
[[nodiscard]] std::shared_ptr<Tool> read_file_tool(std::shared_ptr<const Workspace> workspace);

/// `list_files {path?}`: names of a directory, directories with a slash; at most 1,000.
[[nodiscard]] std::shared_ptr<Tool> list_files_tool(std::shared_ptr<const Workspace> workspace);

/// `write_file {path, content}`: replaces or creates a file in one step, through the write fence.
/// `confirm`: a person is asked first, with a diff.
[[nodiscard]] std::shared_ptr<Tool> write_file_tool(std::shared_ptr<const Workspace> workspace,
                                                    bool confirm);

/// Options of the shell tool. A plain value.
struct ShellOptions {
  bool confirm = false;
  Survivors survivors = Survivors::kill;
  KillLadder ladder{};
  bool inherit_env = false;
};

/// `shell {command}`: a command line for /bin/sh in the workspace's first root. Its output counts
/// as progress. Long output is stored in full if there is a store. It is not a sandbox: a command
/// may touch whatever this user may.
[[nodiscard]] std::shared_ptr<Tool> shell_tool(std::shared_ptr<const Workspace> workspace,
                                               std::shared_ptr<ArtifactStore> artifacts,
                                               ShellOptions options = {});

/// `artifact_read {id, offset?, limit?}`: a page of an output that was too long to be shown.
[[nodiscard]] std::shared_ptr<Tool> artifact_read_tool(std::shared_ptr<ArtifactStore> artifacts);

}  // namespace watchdog
