# The CMake package of rukh:
#
#   find_package(rukh CONFIG REQUIRED)
#   target_link_libraries(program PRIVATE rukh::rukh)
#
# Targets: rukh::shared, rukh::static, and rukh::rukh, which is the shared one unless RUKH_STATIC is
# set before find_package (or only the static one is installed).

# From <prefix>/share/cmake/rukh to <prefix>.
get_filename_component(_rukh_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)

# When it is a build for another system, this prefix may lie outside of that system's root.
set(_rukh_here NO_DEFAULT_PATH NO_CMAKE_FIND_ROOT_PATH NO_CACHE)
find_path(_rukh_include rukh/rukh.h PATHS "${_rukh_prefix}/include" ${_rukh_here})

# The library folder: lib, lib64 or the multiarch one, whichever this prefix has.
set(_rukh_folders "${_rukh_prefix}/lib" "${_rukh_prefix}/lib64")
if(CMAKE_LIBRARY_ARCHITECTURE)
  list(PREPEND _rukh_folders "${_rukh_prefix}/lib/${CMAKE_LIBRARY_ARCHITECTURE}")
endif()
if(WIN32)
  # A program is linked to the import library, and finds the DLL when it runs.
  find_file(_rukh_shared NAMES rukh.dll PATHS "${_rukh_prefix}/bin" ${_rukh_here})
  find_file(_rukh_import NAMES librukh.dll.a rukh.dll.a rukh.dll.lib rukh.lib PATHS ${_rukh_folders} ${_rukh_here})
  if(NOT _rukh_import)
    unset(_rukh_shared)
  endif()
else()
  find_library(_rukh_shared NAMES librukh.so librukh.dylib PATHS ${_rukh_folders} ${_rukh_here})
endif()
find_library(_rukh_static NAMES librukh.a PATHS ${_rukh_folders} ${_rukh_here})

set(rukh_FOUND TRUE)
if(NOT _rukh_include OR NOT (_rukh_shared OR _rukh_static))
  set(rukh_FOUND FALSE)
  set(rukh_NOT_FOUND_MESSAGE "no rukh/rukh.h or no librukh under ${_rukh_prefix}")
  return()
endif()

if(_rukh_shared AND NOT TARGET rukh::shared)
  add_library(rukh::shared SHARED IMPORTED)
  set_target_properties(rukh::shared PROPERTIES
    IMPORTED_LOCATION "${_rukh_shared}"
    INTERFACE_INCLUDE_DIRECTORIES "${_rukh_include}")
  if(WIN32)
    set_target_properties(rukh::shared PROPERTIES IMPORTED_IMPLIB "${_rukh_import}")
  endif()
endif()

# The compiler adds its own libgcc: the shared one, or with -static the one for exceptions.
if(_rukh_static AND NOT TARGET rukh::static)
  add_library(rukh::static STATIC IMPORTED)
  set_target_properties(rukh::static PROPERTIES
    IMPORTED_LOCATION "${_rukh_static}"
    INTERFACE_INCLUDE_DIRECTORIES "${_rukh_include}")
  if(WIN32)
    set_target_properties(rukh::static PROPERTIES
      INTERFACE_COMPILE_DEFINITIONS RUKH_STATIC
      INTERFACE_LINK_LIBRARIES "ntdll;userenv;ws2_32;dbghelp;advapi32")
  else()
    find_package(Threads REQUIRED)
    set_target_properties(rukh::static PROPERTIES
      INTERFACE_LINK_LIBRARIES "Threads::Threads;util;rt;m;${CMAKE_DL_LIBS}")
  endif()
endif()

if(NOT TARGET rukh::rukh)
  add_library(rukh::rukh INTERFACE IMPORTED)
  if(_rukh_shared AND NOT (RUKH_STATIC AND _rukh_static))
    set_target_properties(rukh::rukh PROPERTIES INTERFACE_LINK_LIBRARIES rukh::shared)
  else()
    set_target_properties(rukh::rukh PROPERTIES INTERFACE_LINK_LIBRARIES rukh::static)
  endif()
endif()

unset(_rukh_prefix)
unset(_rukh_here)
unset(_rukh_import)
unset(_rukh_folders)
unset(_rukh_include)
unset(_rukh_shared)
unset(_rukh_static)
