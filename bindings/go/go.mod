module rukh

go 1.19
