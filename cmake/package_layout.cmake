# CPack runs this on the files that it is about to pack, one folder per component.
set(share ${CPACK_TEMPORARY_DIRECTORY}/monitor/usr/share)

function(compress file)
  execute_process(COMMAND gzip -9n ${file} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

# The build's prefix may be another one.
file(GLOB units ${CPACK_TEMPORARY_DIRECTORY}/monitor/usr/lib/systemd/*/*.service)
foreach(unit ${units})
  file(READ ${unit} text)
  string(REGEX REPLACE "ExecStart=[^ ]*/watchdog-monitor" "ExecStart=/usr/bin/watchdog-monitor" text "${text}")
  file(WRITE ${unit} "${text}")
endforeach()
compress(${share}/man/man1/watchdog-monitor.1)

if(CPACK_GENERATOR STREQUAL "RPM")
  include(${CMAKE_CURRENT_LIST_DIR}/rpm_layout.cmake)
else()
  include(${CMAKE_CURRENT_LIST_DIR}/debian_layout.cmake)
endif()
