! reduced DIRECTORY - a job of several ranks leaves one curve for all.
! mpifort -o reduced $(pkg-config --variable=includedir eventlog)/eventlog/{eventlog,eventlog_mpi}.f90 reduced.f90 \
!     $(pkg-config --libs eventlog_mpi); mpirun -n 4 ./reduced logs
program reduced
    use mpi
    use eventlog_mpi
    implicit none
    type(eventlog_mpi_writer) :: log
    character(len=1024) :: directory, message
    integer :: rank, step, status, code

    call MPI_Init(code)
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, code)
    call get_command_argument(1, directory)
    call log%open(directory, MPI_COMM_WORLD, status, message)
    if (status /= 0) then ! on every rank, with the same sentence
        if (rank == 0) write (0, "(a)") "reduced: " // trim(message)
        call MPI_Finalize(code)
        stop 1
    end if
    do step = 0, 99
        call log%scalar("residual", step, 1d0 / (1 + step + rank), eventlog_mpi_max)
    end do
    call log%close()
    call MPI_Finalize(code)
end program
