/// \file
/// The commands of watchdog-monitor. Each is defined in the file of its name, and registers its
/// options and what it does.
#pragma once

namespace watchdog::monitor {

struct CommandLine;

void add_serve(CommandLine& line);
void add_proxy(CommandLine& line);
void add_demo(CommandLine& line);
void add_config(CommandLine& line);
void add_status(CommandLine& line);
void add_sessions(CommandLine& line);
void add_watch(CommandLine& line);
void add_events(CommandLine& line);
void add_explain(CommandLine& line);
void add_turns(CommandLine& line);
void add_alerts(CommandLine& line);
void add_cancel(CommandLine& line);
void add_wait(CommandLine& line);
void add_check(CommandLine& line);
void add_report(CommandLine& line);
void add_audit(CommandLine& line);
void add_forget(CommandLine& line);
void add_backup(CommandLine& line);
void add_copy(CommandLine& line);
void add_ready(CommandLine& line);
void add_doctor(CommandLine& line);
void add_self_check(CommandLine& line);
void add_service(CommandLine& line);
void add_hooks(CommandLine& line);
void add_env(CommandLine& line);
void add_follow(CommandLine& line);
void add_mcp(CommandLine& line);
void add_mcp_proxy(CommandLine& line);
void add_run(CommandLine& line);
void add_replay(CommandLine& line);
void add_predict(CommandLine& line);
void add_completion(CommandLine& line);
void add_man(CommandLine& line);

/// Every command, in the order in which `--help` lists them.
inline constexpr void (*all_commands[])(CommandLine&) = {
    add_serve,   add_proxy,      add_demo,    add_config,     add_status,  add_sessions,
    add_watch,   add_events,     add_explain, add_turns,      add_alerts,  add_cancel,
    add_wait,    add_check,      add_report,  add_audit,      add_forget,  add_backup,
    add_copy,    add_ready,      add_doctor,  add_self_check, add_service, add_hooks,
    add_env,     add_follow,     add_mcp,     add_mcp_proxy,  add_run,     add_replay,
    add_predict, add_completion, add_man};

}  // namespace watchdog::monitor
