#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/manual.h"
#include "terminal/output.h"

namespace watchdog::monitor {

void add_man(CommandLine& line) {
  line.app.add_subcommand("man", "Print the manual page")->callback([&line] {
    print(man_page(line.app));
  });
}

}  // namespace watchdog::monitor
