#include <memory>

#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/completion_script.h"
#include "cli/usage.h"
#include "terminal/output.h"

namespace watchdog::monitor {

void add_completion(CommandLine& line) {
  const auto shell = std::make_shared<std::string>();
  auto* command = line.app.add_subcommand("completion", "Print a shell's completion script");
  command->add_option("shell", *shell, "Shell")
      ->required()
      ->check(one_of("shell", {"bash", "zsh", "fish"}));
  command->callback([&line, shell] {
    print(*shell == "bash"  ? bash_completion(line.app)
          : *shell == "zsh" ? zsh_completion(line.app)
                            : fish_completion(line.app));
  });
}

}  // namespace watchdog::monitor
