# Writes the commit of SOURCE to the header OUTPUT, with "-dirty" if files differ from it; an empty one if it is not
# known. The header changes only with the commit.
cmake_minimum_required(VERSION 3.25)
set(commit "")
execute_process(COMMAND git -C ${SOURCE} rev-parse --show-prefix OUTPUT_VARIABLE inside RESULT_VARIABLE unknown
                OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(unknown STREQUAL "0" AND inside STREQUAL "")
  execute_process(COMMAND git -C ${SOURCE} describe --always --dirty --abbrev=40 "--exclude=*" OUTPUT_VARIABLE commit
                  OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
file(CONFIGURE OUTPUT ${OUTPUT} CONTENT "#pragma once\n#define WATCHDOG_COMMIT \"@commit@\"\n" @ONLY)
