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
void add_bundle(CommandLine& line);
void add_alerts(CommandLine& line);
void add_answer(CommandLine& line);
void add_cancel(CommandLine& line);
void add_recovery(CommandLine& line);
void add_wait(CommandLine& line);
void add_check(CommandLine& line);
void add_activity(CommandLine& line);
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

/// Every command with its group, in the order in which `--help` lists them.
inline constexpr struct {
  const char* group;
  void (*add)(CommandLine&);
} all_commands[] = {
    {"Run the monitor", add_serve},
    {"Run the monitor", add_demo},
    {"Run the monitor", add_config},
    {"Run the monitor", add_service},
    {"Run the monitor", add_ready},
    {"Run the monitor", add_doctor},
    {"Run the monitor", add_self_check},
    {"Watch agents", add_run},
    {"Watch agents", add_hooks},
    {"Watch agents", add_follow},
    {"Watch agents", add_proxy},
    {"Watch agents", add_env},
    {"Watch agents", add_mcp},
    {"Watch agents", add_mcp_proxy},
    {"Look", add_sessions},
    {"Look", add_status},
    {"Look", add_watch},
    {"Look", add_events},
    {"Look", add_explain},
    {"Look", add_turns},
    {"Look", add_bundle},
    {"Look", add_activity},
    {"Look", add_alerts},
    {"Look", add_report},
    {"Look", add_audit},
    {"Act", add_wait},
    {"Act", add_check},
    {"Act", add_answer},
    {"Act", add_cancel},
    {"Act", add_recovery},
    {"Data", add_backup},
    {"Data", add_copy},
    {"Data", add_forget},
    {"Data", add_replay},
    {"Data", add_predict},
    {"Help", add_completion},
    {"Help", add_man},
};

}  // namespace watchdog::monitor
